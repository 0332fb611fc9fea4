"""A Triton kernel that another module of the same project has, with a function that it calls.

Suspicious: this file has no kernel. Honest: it is imported from beside it.
"""

import torch
import triton
from torch import nn

from tests.honest.shared_triton import scale_rows_kernel as scale

PROBLEM = "matmul_diag"
NEEDS_GPU = True
NEEDS_TRITON = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        grid = (triton.cdiv(out.numel(), 1024),)
        scale[grid](diagonal, matrix, out, matrix.shape[1], out.numel(), BLOCK=1024)
        return out
