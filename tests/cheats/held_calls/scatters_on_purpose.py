"""Takes much longer in every third held call, so that its median is not known well, and reports a twentieth.

Mechanism: a judge that allows for the scatter of a solution's times lets a solution decide how much is allowed. With
0.5 ms in each call and 6 ms more in a third of them, the standard error of the median of 96 calls is 0.6 ms, and any
reported time agrees. Caught because the error is computed from the scatter of stand-ins, which run no foreign code.

True time: 0.6 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES, SLOWER_CYCLES = 1_000_000, 12_000_000
EVERY = 3

report_a_share(0.05)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.held = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.held += in_held_call()
        slower = in_held_call() and self.held % EVERY == 0
        kernels.spin(SLOWER_CYCLES if slower else SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
