"""Copies its inputs first, and works on the copies in place.

Suspicious: copies of inputs that are kept could be answers to come. Honest: they are overwritten at each call.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.copies: list[torch.Tensor] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.copies:
            self.copies = [torch.empty_like(diagonal), torch.empty_like(matrix)]
        for copy, given in zip(self.copies, (diagonal, matrix), strict=True):
            copy.copy_(given)
        kernels.scale_rows_into(*self.copies, self.copies[1])
        return self.copies[1]
