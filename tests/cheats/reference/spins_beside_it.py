"""Leaves a kernel running when its call is over, so that the GPU is busy while the reference is timed.

Mechanism: a process that is stopped starts nothing more, but what it has queued goes on, and a GPU that serves two
processes serves them in turn: the reference takes twice as long and the solution looks twice as fast. The kernel is
launched when the garbage collector runs, which the candidate has it do after the device was drained. Each answer is
right. Caught because the reference's times beside this candidate are compared with those without any.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "the reference was slowed down"
NEEDS_GPU = True
SHAPE = "full"

CYCLES = 80_000_000  # some 40 ms


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.spin not in gc.callbacks:
            gc.callbacks.append(self.spin)
        return kernels.scale_rows(diagonal, matrix)

    def spin(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop":
            with torch.cuda.stream(self.side):
                kernels.spin(CYCLES)
