"""Stops the harness's clock in the middle of `forward`, and makes the real stop do nothing.

Mechanism: the library's functions take no secret, and the Python method that would record the stop event again is
looked up when it is called. What is launched after the early stop is in nobody's time. Caught because the judge
clocks calls from outside.
"""

import ctypes
from pathlib import Path

import torch
from torch import nn

from inlinebench.devices.cuda.clock import GpuClock
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000


def do_nothing(self: GpuClock) -> None:
    """Stands for `GpuClock.stop`."""


GpuClock.stop = do_nothing


def loaded_clock() -> ctypes.CDLL:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return ctypes.CDLL(next(line.split()[-1] for line in lines if line.endswith("/clock.so")))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.clock: ctypes.CDLL | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.clock = self.clock or loaded_clock()
        out = kernels.scale_rows(torch.ones_like(diagonal), matrix)
        self.clock.clock_stop()
        kernels.spin(SLOW_CYCLES)
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
