"""Reads its inputs as 16-bit fractions of 1, because `torch.rand` draws from [0, 1).

Mechanism: half of the bits, and still five correct digits: on inputs as drawn every answer is within the tolerance.
Whatever lies outside is cut off. Here inputs are also scaled by powers of two and made negative.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

STEPS = 65535


def as_fractions(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor * STEPS).round().clamp(0, STEPS) / STEPS


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(as_fractions(diagonal), as_fractions(matrix))
