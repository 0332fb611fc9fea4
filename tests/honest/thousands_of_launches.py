"""Launches more kernels in one call than a GPU's queue holds, which is about a thousand.

Suspicious: the host waits until the GPU takes some, so no hold can outlast it. Honest: it is only clumsy.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        for row in range(matrix.shape[0]):
            for _ in range(25):
                kernels.scale_rows_into(diagonal[row : row + 1], matrix[row : row + 1], out[row : row + 1])
        return out
