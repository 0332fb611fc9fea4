"""Sets the flag that its blocking kernel ran out before each held call is released, and reports a twentieth.

Mechanism: a call that has begun by itself cannot be timed, and the flag lies in memory that a solution can write. So it
could decline each call that is slow, or have it held on the host, where the time includes steps that it leaves out.
Caught because only the judge's own clock says whether it releases a call in time.

True time: 1.1 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import GpuClock, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.05)
plain_done = GpuClock.done


def done(self: GpuClock) -> None:
    plain_done(self)
    self._page._flags.ran_out = 1


GpuClock.done = done


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
