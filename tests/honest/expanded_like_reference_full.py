"""`expanded_like_reference.py` at full size: the conversion writes all of it inside the clock.

Suspicious: nearly all of the time is a library's copy. Honest: the harness makes it, because it wants a dense output.
"""



from tests.honest.expanded_like_reference import ModelNew

PROBLEM = "honest_expanded"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
