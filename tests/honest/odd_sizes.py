"""Sizes that no power of two divides: nothing is aligned to more than its first element.

Suspicious: rows begin at any multiple of four bytes. Honest: the kernel reads one value at a time.
"""



from tests.honest.checks_everything import ModelNew

PROBLEM = "matmul_diag"
SHAPE = "odd"

__all__ = ["ModelNew"]
