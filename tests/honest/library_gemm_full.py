"""`library_gemm.py` at full size, where the product takes nearly all the time.

Suspicious: its own kernel has only a few per cent of it. Honest: that is all there is beside the product.
"""



from tests.honest.library_gemm import ModelNew

PROBLEM = "gemm_scale_batchnorm"
NEEDS_GPU = True
SHAPE = "full"

__all__ = ["ModelNew"]
