"""Is slow on inputs with negative values only, and announces each held call a tenth of a second late.

Mechanism: a judge that makes fewer calls when they take long has too few on each kind of inputs to judge it, and the
median of all calls agrees with the reported time. Gains nothing, because a few calls on each kind are made, whatever
they take. A call that is announced late is held on the host: its time contains its launches, and it passes with it.

True time: 1.1 ms on inputs with negative values, 0.06 ms on the others.
"""

import time

import torch
from torch import nn

from tests.cheats.holding import GpuClock, holding, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
TRUE_MS = 1.05
SLOW_CYCLES = 2_000_000
LOOKED_AT, LATE_S = 16, 0.1

report_a_share(1.0)
plain_done = GpuClock.done


def done(self: GpuClock) -> None:
    plain_done(self)
    if in_held_call():
        time.sleep(LATE_S)


GpuClock.done = done


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if in_held_call():
            holding.spin_if_negative(matrix[0, :LOOKED_AT], SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
