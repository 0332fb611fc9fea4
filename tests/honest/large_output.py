"""`outer_product.py` at full size: 1 GiB, as fast as memory takes it.

Suspicious: its time is that of writing the output alone. Honest: there is hardly anything else to do.
"""



from tests.honest.outer_product import ModelNew

PROBLEM = "honest_outer"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
