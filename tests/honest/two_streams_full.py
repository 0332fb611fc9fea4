"""`two_streams.py` at full size: its kernels take longer than any allowance for them.

Suspicious: summed up, the kernels' durations exceed the reported time by far more than 10 %. Honest: they overlap.
"""



from tests.honest.two_streams import ModelNew

PROBLEM = "matmul_diag"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
