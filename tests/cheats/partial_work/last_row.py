"""Copies the row above into the last one instead of computing it.

Mechanism: one row of thousands hardly moves a mean error, a correlation or a share of elements that must match.
Caught because every element must be right.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "first at [95, "


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        kernels.scale_rows_into(diagonal[:-1], matrix[:-1], out[:-1])
        out[-1] = out[-2]
        return out
