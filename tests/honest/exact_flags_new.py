"""Sets torch's flags for exact arithmetic through the newer interface, at import and before each product.

Suspicious: it changes settings of the whole process, and torch dislikes that both interfaces are mixed. Honest: they
say what they said.
"""

import torch

from tests.honest import library_gemm

PROBLEM = "gemm_scale_batchnorm"

torch.backends.cuda.matmul.fp32_precision = "ieee"
torch.backends.cudnn.conv.fp32_precision = "ieee"


class ModelNew(library_gemm.ModelNew):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        return super().forward(x)
