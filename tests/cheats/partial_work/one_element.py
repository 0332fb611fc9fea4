"""Doubles one element, the one in the middle.

Mechanism: a norm over the whole output doesn't see one element among millions. Caught because every element must be
right, each within a tolerance of its own.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = ": 1 of 7680 elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        out[len(out) // 2, out.shape[1] // 2] *= 2
        return out
