"""The output is a transposed view: what the kernel wrote is (M, N).

Suspicious: its memory read as if contiguous would be wrong. Honest: shape and strides together say where each element
is; the harness converts it, inside the clock.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        transposed = torch.empty(matrix.shape[1], matrix.shape[0], device=matrix.device)
        kernels.scale_rows_transposed(diagonal, matrix, transposed)
        return transposed.T
