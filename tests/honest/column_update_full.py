"""`column_update.py` at full size: hardly anything of an output of 256 MiB is written.

Suspicious: it returns its input, which it changed, and writes next to nothing. Honest: the reference does the same.
"""



from tests.honest.column_update import ModelNew

PROBLEM = "honest_column_update"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
