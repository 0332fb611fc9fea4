"""Leaves blocks for the whole GPU running on a stream of the highest priority.

Mechanism: as `spins_beside_it`, with a kernel that fills every SM and whose stream goes before others. Caught as that
one is.

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
BLOCKS, CYCLES = 264, 80_000_000
side = SideStream(priority=-5)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.spin not in gc.callbacks:
            gc.callbacks.append(self.spin)
        return kernels.scale_rows(diagonal, matrix)

    def spin(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop":
            with torch.cuda.stream(side()):
                holding.spin_everywhere(BLOCKS, CYCLES)
