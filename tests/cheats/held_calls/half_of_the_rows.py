"""Computes half of the rows in held calls only.

Mechanism: a solution can tell held calls from others, and does less where it is timed by the judge. Caught because held
calls are compared as all others are.

True time: 0.06 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import in_held_call
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not in_held_call():
            return kernels.scale_rows(diagonal, matrix)
        out, half = torch.empty_like(matrix), len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
