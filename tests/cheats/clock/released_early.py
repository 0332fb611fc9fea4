"""Releases the hold itself, works and waits without one, and starts the clock again for one likely pass.

Mechanism: releasing early lets `forward` wait for the device without the hold running out, so the call still counts
as held. The slow part is over before the start event that counts. Caught in the calls that the judge clocks from
outside: it writes their inputs just before its own release, and work that didn't wait for that has read something
else.
"""

import ctypes
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
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
        self.clock.clock_release()
        kernels.spin(SLOW_CYCLES)
        torch.cuda.synchronize()
        self.clock.clock_start()
        return kernels.scale_rows(diagonal, matrix)
