"""Computes whole tiles of 32 rows and leaves zeros in the rows below them.

Mechanism: without a tail there is no bound to check in the kernel, and powers of two never have one. Caught at the
shape "odd", whose sizes are primes.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "first at [128, "
SHAPE = "odd"
TILE = 32


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(matrix)
        whole = len(matrix) // TILE * TILE
        kernels.scale_rows_into(diagonal[:whole], matrix[:whole], out[:whole])
        return out
