"""Says that its held calls began too late, so that they wait on the host, and answers when its work is queued.

Mechanism: a solution that waits for the device is held on the host, and its call ends when it says so. The steps that
the stand-in takes beside the work are left out as well. Caught because the outputs are copied before the time is taken,
and those of unfinished work are missing.

True time: 10 ms.
"""

import time

import torch
from torch import nn

from tests.cheats.holding import HELD_MS, GpuClock, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 20_000_000

report_a_share(0.01)
plain_synchronize = GpuClock.synchronize


def done(self: GpuClock) -> None:
    self._page._flags.done = 1


def hold(self: GpuClock) -> None:
    time.sleep(0.6 * HELD_MS / 1e3)  # later than the judge releases


def do_nothing(self: GpuClock) -> None:
    if not in_held_call():
        plain_synchronize(self)


GpuClock.done, GpuClock.hold = done, hold
GpuClock.synchronize = GpuClock.flush = do_nothing


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
