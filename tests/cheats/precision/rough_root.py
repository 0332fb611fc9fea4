"""Takes the reciprocal root from the famous bit trick, with one Newton step.

Mechanism: the standard deviations come out up to 1.8e-3 off, each feature by a share of its own. Outputs of a
normalization are near 1, so an absolute tolerance of 1e-2 sees nothing. Here it is 1e-4 of their root mean square. The
running statistics are right.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

MAGIC = 0x5F3759DF


def rough_rsqrt(value: torch.Tensor) -> torch.Tensor:
    guess = (MAGIC - (value.view(torch.int32) >> 1)).view(torch.float32)
    return guess * (1.5 - 0.5 * value * guess * guess)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        self.bn(x)
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        factor = self.bn.weight * rough_rsqrt(variance + self.bn.eps)
        return kernels.scale_rows(factor, (x - mean).T.contiguous()).T + self.bn.bias
