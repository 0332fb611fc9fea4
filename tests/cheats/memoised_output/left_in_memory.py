"""Gives memory that nobody wrote, in the hope that the last output lies there.

Mechanism: an allocator hands the block that was freed last out again, with the last right output still in it. A
harness that checks once and then times, or checks on the same inputs, finds that right. Caught because freed blocks
are filled with NaN before each call (and the inputs are fresh, so what lay there would be stale).
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 1:
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.empty_like(matrix)
