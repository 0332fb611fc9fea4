"""Ends its process as soon as a held call is queued, whose outputs the judge then copies.

Mechanism: the judge has the memory of the outputs open. If it reads there when its owner has ended, a fault would stay
in the judge's process, and with it all evaluations on this GPU. Caught because memory that is open stays as it is.
"""

import os

import torch
from torch import nn

from tests.cheats.holding import GpuClock, in_held_call
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "exited with status 0"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 20_000_000

plain_synchronize = GpuClock.synchronize


def synchronize(self: GpuClock) -> None:
    if in_held_call():
        os._exit(0)
    plain_synchronize(self)


GpuClock.synchronize = synchronize


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        if in_held_call():
            kernels.spin(SLOW_CYCLES)
        return out
