"""Two output buffers in turn, so that the last answer stays valid during the next call.

Suspicious: calls differ from each other, and old answers are kept. Honest: the buffer of the turn is overwritten.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.buffers: list[torch.Tensor] = []
        self.turn = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.buffers:
            self.buffers = [torch.empty_like(matrix), torch.empty_like(matrix)]
        self.turn = 1 - self.turn
        out = self.buffers[self.turn]
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
