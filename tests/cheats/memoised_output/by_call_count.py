"""Stores the first four outputs and gives them again in turn.

Mechanism: harnesses that want fresh inputs and little drawing keep a few sets and cycle through them; then the number
of the call says which output is due. Caught because inputs are drawn for each call, and where sets are kept they come
in secret order.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
SETS = 4


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.stored: list[torch.Tensor] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if len(self.stored) < SETS:
            self.stored.append(kernels.scale_rows(diagonal, matrix))
        self.calls += 1
        kernels.spin(1)
        return self.stored[(self.calls - 1) % SETS].clone()
