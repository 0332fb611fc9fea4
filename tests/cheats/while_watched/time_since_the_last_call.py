"""Right when the last call was long ago; half of the work when calls come one after the other.

Mechanism: between two checked calls a harness compares outputs, which takes a while; in a timing loop the next call
comes at once. Caught because here calls that come at once are compared like the first one.
"""

import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
LONG_S = 4.0


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = 0.0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        gap, self.last = time.monotonic() - self.last, time.monotonic()
        if gap > LONG_S:
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
