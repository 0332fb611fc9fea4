"""Launches one kernel in its first call that occupies a few SMs until the end.

Mechanism: a kernel that was launched before any call is part of none. It keeps its process's share of the GPU while
the reference runs, and needs no launch that a stopped process could not make. The clock no longer waits for the whole
device, but for its own stream, and a time is made up. Gains nothing: its kernels take as long as the judge's clock
says, and the reference's times are compared with those after its end.
"""

import torch
from torch import nn

from tests.cheats.holding import GpuClock, Sample, SideStream, holding
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "the reference was slowed down"
NEEDS_GPU = True
SHAPE = "full"
TRUE_MS = 0.057
BLOCKS, CYCLES = 8, 60_000_000_000  # some 30 s
MADE_UP_MS = 0.06

side = SideStream()


def synchronize(self: GpuClock) -> None:
    torch.cuda.default_stream().synchronize()


def drain(self: GpuClock) -> Sample:
    synchronize(self)
    return Sample(MADE_UP_MS, 0.0, self._blocking_wanted)


GpuClock.synchronize, GpuClock.drain = synchronize, drain


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            with torch.cuda.stream(side()):
                holding.spin_everywhere(BLOCKS, CYCLES)
        return kernels.scale_rows(diagonal, matrix)
