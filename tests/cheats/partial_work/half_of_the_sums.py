"""Sums over the first half of K only, and doubles the sums.

Mechanism: on values from [0, 1) the two halves of a long sum are alike, 1 % apart for K in the thousands, so half of
the work is enough for a loose tolerance. Caught element by element, on random signs by far.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        half = A.shape[1] // 2
        return kernels.matmul(2 * A[:, :half], B[:, :half].t().contiguous())
