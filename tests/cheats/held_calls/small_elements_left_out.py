"""Computes only elements above a millionth of the largest one in held calls, and is exact in all others.

Mechanism: most calls are compared by a bound that depends on the size of the whole output, and a few secret ones in
each element. Where held calls were never among these, a solution could leave out there what the bound does not show,
and report that time. Caught because a secret held call is judged in each element as well.

True time: 0.06 ms; leaving out takes longer here and would not elsewhere.
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
SMALL = 1e-6


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        return out.masked_fill_(out.abs() < SMALL * out.abs().amax(), 0.0) if in_held_call() else out
