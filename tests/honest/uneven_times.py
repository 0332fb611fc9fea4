"""Takes half as long again in every third call, in which it makes its workspace anew.

Suspicious: its times scatter, so that its median is not known well. Honest: all of its work is inside the clock.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EVERY = 3


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.workspace = torch.empty(0)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.calls % EVERY == 0:
            self.workspace = torch.zeros_like(matrix)
        self.calls += 1
        kernels.scale_rows_into(diagonal, matrix, self.workspace)
        return self.workspace.clone()
