"""Leaves copies running when its call is over, which need no SM.

Mechanism: a GPU serves the kernels of two processes in turn, but copy engines work beside them. A reference that is
bound by bandwidth shares it with 100 copies of 1 GB. Caught because the reference's times beside this candidate are
compared with those without any.

True speedup: 1.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.holding import SideStream
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "the reference was slowed down"
NEEDS_GPU = True
SHAPE = "full"
COPIES, VALUES = 100, 1 << 28
side = SideStream()


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.memory is None:
            self.memory = torch.ones(2, VALUES, device=matrix.device)
            gc.callbacks.append(self.copy)
        return kernels.scale_rows(diagonal, matrix)

    def copy(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop" and self.memory is not None:
            with torch.cuda.stream(side()):
                for _ in range(COPIES):
                    self.memory[0].copy_(self.memory[1], non_blocking=True)
