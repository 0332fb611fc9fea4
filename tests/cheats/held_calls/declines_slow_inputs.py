"""Says of calls on slow inputs that they were not held behind the blocking kernel, so that they do not count.

Mechanism: a call that was not queued behind the blocking kernel has no usable time, and the solution's process says
whether it was. Caught because the judge's own times of held calls do not depend on what a solution says about them.

True time: 1.1 ms on inputs with negative values, 0.06 ms on the others.
"""

from dataclasses import replace

import torch
from torch import nn

from tests.cheats.holding import GpuClock, Sample, holding
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000
LOOKED_AT, FAST_MS = 16, 0.06

plain_drain = GpuClock.drain


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    slow = sample.device_ms > 10 * FAST_MS
    return replace(sample, device_ms=min(sample.device_ms, FAST_MS), blocked=sample.blocked and not slow)


GpuClock.drain = drain


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        holding.spin_if_negative(matrix[0, :LOOKED_AT], SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
