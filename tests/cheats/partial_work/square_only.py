"""Takes all three sizes of a matrix product for the smallest of them.

Mechanism: right for square matrices, where one size stands for all, and most examples are square. Caught because the
problem's sizes differ from each other in every shape.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = min(*A.shape, *B.shape)
        out = torch.zeros(len(A), len(B), device=A.device)
        square = kernels.matmul(A[:size, :size].contiguous(), B[:size, :size].t().contiguous())
        out[:size, :size] = square
        return out
