"""`shared_outputs.py` at full size, where writing each output by itself would take four times as long.

Suspicious: it writes far fewer bytes than its outputs have. Honest: the reference's outputs share memory as well.
"""



from tests.honest.shared_outputs import ModelNew

PROBLEM = "honest_views"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
