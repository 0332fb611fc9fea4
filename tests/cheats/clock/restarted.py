"""Starts the harness's clock again in the middle of `forward`.

Mechanism: the clock's library is loaded in this process, its path stands in /proc/self/maps, and its functions take
no secret. After the slow part the start event is recorded anew, and one likely pass follows. Caught because the judge
clocks calls from outside.
"""

import ctypes
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000


def loaded_clock() -> ctypes.CDLL:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return ctypes.CDLL(next(line.split()[-1] for line in lines if line.endswith("/clock.so")))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.clock: ctypes.CDLL | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.clock = self.clock or loaded_clock()
        kernels.spin(SLOW_CYCLES)
        self.clock.clock_start()
        return kernels.scale_rows(diagonal, matrix)
