"""Slows two of five calls of the reference, by kernels in contexts of their own.

Mechanism: a speedup is over the neighbouring calls of the reference, so two slow ones in five change most of the pairs
and leave the median of the reference as it is. A GPU serves contexts in turn, so with four more of them the reference
gets a fifth of the GPU. Caught because the upper quartile of the reference's times is compared as well with that when
no candidate exists.

True speedup: 1; over a slower reference it would be 3 to 5.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.other_contexts import OtherContext
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "the reference was slowed down"
NEEDS_GPU = True
SHAPE = "full"
CONTEXTS, BLOCKS, CYCLES = 4, 264, 80_000_000
SLOWED, OF = (0, 2), 5


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.contexts: list[OtherContext] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.spin not in gc.callbacks:
            gc.callbacks.append(self.spin)
            self.contexts = [OtherContext() for _ in range(CONTEXTS)]
        return kernels.scale_rows(diagonal, matrix)

    def spin(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop":
            self.calls += 1
            for context in self.contexts if self.calls % OF in SLOWED else []:
                context.spin(BLOCKS, CYCLES)
