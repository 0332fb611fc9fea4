"""Launches a kernel for each row.

Suspicious: nearly a hundred launches a call; a few calls' worth fill the queue of a GPU, which holds about a thousand,
and then the host waits. Honest: it is only clumsy.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        for row in range(matrix.shape[0]):
            kernels.scale_rows_into(diagonal[row : row + 1], matrix[row : row + 1], out[row : row + 1])
        return out
