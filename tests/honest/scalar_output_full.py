"""`counter_in_workspace.py` on a million values of both signs.

Suspicious: where they nearly cancel, the relative error of their sum is large. Honest: it is rounding, in another
order than the reference's.
"""



from tests.honest.counter_in_workspace import ModelNew

PROBLEM = "honest_sum"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
