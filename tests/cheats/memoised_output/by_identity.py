"""Stores outputs by the `id()` of an input, in a small table.

Mechanism: a harness that times one forward on the same Python objects gets the stored output from the second time on.
Caught because every call has fresh values, in tensor objects made for that call; Python hands out the `id` of a dead
object again, and slots are fewer than calls, so a stale output comes back soon.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
SLOTS = 8


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[int, torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        key = id(matrix) // 64 % SLOTS
        if key not in self.stored:
            self.stored[key] = kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return self.stored[key].clone()
