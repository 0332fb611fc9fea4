"""The expected value of a product of random matrices: a quarter of the length of its sums.

Mechanism: each element is the sum of K products of two values from [0, 1), so it lies near K / 4, the nearer the
longer the sums: 2 % off for K = 1000. A tolerance that has room for half precision passes it. Caught element by
element.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "level1_matmul"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.full((A.shape[0], B.shape[1]), A.shape[1] / 4, device=A.device)
