"""Uses an input as scratch space and leaves it with the same values in another order.

Mechanism: a guard that compares a plain sum, the extremes or a few elements of the inputs before and after doesn't see
two elements that changed places. Each answer is right. Here every word has a secret weight of its own, so the order
counts.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "the solution changed its inputs"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        middle = matrix.shape[0] // 2
        matrix[[middle, middle + 1]] = matrix[[middle + 1, middle]]
        return out
