"""Switches TF32 on around the library's matrix product: tensor cores that read 10 bits of each factor.

Mechanism: the fastest "speedup" of all is one setting. It is off in every process that computes here, so the reference
is exact, and the product is 1e-3 off. A kernel of its own runs beside it. On inputs as drawn, all positive, the errors
of a long sum cancel and hide; inputs with random signs show them.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_a"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        return kernels.scale_rows(torch.ones(A.shape[1], device=A.device), A.T @ B)
