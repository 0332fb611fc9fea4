"""As `slows_the_stand_in`, and takes almost all of the GPU's memory, which the driver wipes when the process ends.

Mechanism: a stand-in counts at most as one that ran when the solution's process had ended. The driver wipes freed
memory in the background, at the cost of the bandwidth of those who run meanwhile: the stand-ins and references that
are to be undisturbed. Caught if what is measured after the end is measured when the GPU is idle again.

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
LEFT_FREE = 6 << 30

report_a_share(0.05)
side, plain_synchronize = SideStream(), GpuClock.synchronize


def synchronize(self: GpuClock) -> None:
    plain_synchronize(self)
    if in_held_call():
        with torch.cuda.stream(side()):
            holding.spin_everywhere(BLOCKS, LEFT_CYCLES)


GpuClock.synchronize = synchronize


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.taken: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.taken is None:
            size = torch.cuda.mem_get_info()[0] - LEFT_FREE
            self.taken = torch.full((max(1, size),), 1, dtype=torch.uint8, device=matrix.device)
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
