"""A kernel that outlives its call sets the diagonal to zero while the reference is about to read it.

Mechanism: the candidate's processes are stopped while the judge works, but what they have queued on the GPU goes on.
The answer is zeros. When the garbage collector runs, after the device was drained, a kernel is launched that waits
until the judge has probably compared the inputs with their sum, and then sets the diagonal to zero. The reference reads
zeros. The inputs must be looked at once more after the reference has read them, or what it reads be the judge's own.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "inputs"  # in the label of each call: the rest of the reason depends on when the kernel got its turn
NEEDS_GPU = True
SHAPE = "full"

CYCLES = 8_000_000  # some 4 ms: the judge stops the candidate and looks at the inputs, then flushes the caches


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()
        self.diagonal: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.spoil not in gc.callbacks:
            gc.callbacks.append(self.spoil)
        self.diagonal = diagonal
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)

    def spoil(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop" and self.diagonal is not None:
            with torch.cuda.stream(self.side):
                kernels.spin(CYCLES)
                self.diagonal.zero_()
            self.diagonal = None
