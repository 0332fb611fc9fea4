"""Leaves work on the GPU after held calls only, so that the stand-in before the next one takes longer.

Mechanism: the time of a held call is by how much it takes longer than a stand-in. Work that runs beside the stand-in,
and not beside a reference whose time counts, makes that less. Caught because a stand-in counts at most as one that ran
when the solution's process had ended.

True time: 1.1 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import GpuClock, SideStream, holding, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES, LEFT_CYCLES, BLOCKS = 2_000_000, 80_000_000, 264

report_a_share(0.05)
side, plain_synchronize = SideStream(), GpuClock.synchronize


def synchronize(self: GpuClock) -> None:
    plain_synchronize(self)
    if in_held_call():
        with torch.cuda.stream(side()):
            holding.spin_everywhere(BLOCKS, LEFT_CYCLES)


GpuClock.synchronize = synchronize


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
