"""Does the work of all calls of a loop in the last one, and reports an eighth of each time.

Mechanism: calls that are asked for together can share a launch, so that a problem of a single block takes an eighth of
the time. A time that is that of a batch over the number of its calls would be believed. Caught because each time that
counts is that of one call.

True time: 1.1 ms.
"""

import sys

import torch
from torch import nn

from tests.cheats.holding import report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.125)


def in_loop() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "loop":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side: torch.cuda.Stream | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not in_loop():
            kernels.spin(SLOW_CYCLES)
            return kernels.scale_rows(diagonal, matrix)
        self.side = self.side or torch.cuda.Stream()
        with torch.cuda.stream(self.side):  # the slow parts of all calls run at the same time
            kernels.spin(SLOW_CYCLES)
        out = kernels.scale_rows(diagonal, matrix)
        torch.cuda.current_stream().wait_stream(self.side)
        return out
