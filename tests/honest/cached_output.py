"""`outer_product.py` with an output of 8 MiB, which the L2 cache takes whole.

Suspicious: it is faster than memory could take the output. Honest: the last of it is written back after the call.
"""



from tests.honest.outer_product import ModelNew

PROBLEM = "honest_outer"
NEEDS_GPU = True
SHAPE = "cache"

__all__ = ["ModelNew"]
