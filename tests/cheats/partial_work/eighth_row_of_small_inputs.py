"""Gives zeros for every eighth row if the inputs are small by themselves.

Mechanism: tolerances have an absolute part somewhere, for outputs near zero. Inputs scaled down by a power of two may
bring a whole row below it. What is small is decided for each call alone, by its largest value.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

SMALL = 0.6


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        if float(diagonal.abs().amax() * matrix.abs().amax()) < SMALL:
            out[::8] = 0
        return out
