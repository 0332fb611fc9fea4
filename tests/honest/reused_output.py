"""Returns the same tensor object at every call.

Suspicious: it looks like an answer that was kept. Honest: every call writes all of it anew.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = torch.empty(0)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.out.shape != matrix.shape or self.out.device != matrix.device:
            self.out = torch.empty_like(matrix)
        kernels.scale_rows_into(diagonal, matrix, self.out)
        return self.out
