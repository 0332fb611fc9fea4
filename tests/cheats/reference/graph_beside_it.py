"""Leaves a graph of a thousand kernels running when its call is over.

Mechanism: a stopped process launches nothing, and one launch of a graph is enough for tens of milliseconds. Caught
because the reference's times beside this candidate are compared with those without any.

True speedup: 1.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.holding import SideStream, holding
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "the reference was slowed down"
NEEDS_GPU = True
SHAPE = "full"
KERNELS, BLOCKS, CYCLES = 1000, 264, 80_000
side = SideStream()


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph: torch.cuda.CUDAGraph | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                for _ in range(KERNELS):
                    holding.spin_everywhere(BLOCKS, CYCLES)
            gc.callbacks.append(self.replay)
        return kernels.scale_rows(diagonal, matrix)

    def replay(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop" and self.graph is not None:
            with torch.cuda.stream(side()):
                self.graph.replay()
