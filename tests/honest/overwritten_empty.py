"""Every element of an uninitialised output is first set to NaN, then to what it should be.

Suspicious: a NaN pattern is what the harness looks for. Honest: none is left.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix).fill_(float("nan"))
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
