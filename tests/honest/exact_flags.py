"""Sets torch's flags for exact arithmetic, through the interface that the harness uses too.

Suspicious: it changes settings of the whole process. Honest: they are what they were.
"""

import torch

from tests.honest.library_gemm import ModelNew

PROBLEM = "gemm_scale_batchnorm"

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("highest")
torch.set_grad_enabled(False)

__all__ = ["ModelNew"]
