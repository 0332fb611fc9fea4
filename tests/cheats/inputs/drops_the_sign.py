"""Drops the sign of an input, because `torch.rand` never draws a negative number.

Mechanism: on inputs as drawn every answer is right. It stands for all that rests on a sign: a root without a check, a
maximum that starts at zero, a rectifier left out. Here inputs are also made negative, or given random signs.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal.abs(), matrix)
