"""Computes columns in whole vectors of four and leaves the last one to three columns as they come.

Mechanism: loads of 16 bytes want a number of columns that four divides, and usual sizes have that. Caught at the
shape "odd".
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
SHAPE = "odd"
VECTOR = 4


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        whole = matrix.shape[1] // VECTOR * VECTOR
        out[:, whole:] = matrix[:, whole:]
        return out
