"""Updates the running statistics with a momentum of 0.1001 where it is 0.1.

Mechanism: a small constant, rounded or copied from another framework, moves the statistics by a thousandth, below any
tolerance that is made for outputs of kernels. Here states are compared at a tenth of the tolerance.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "buffer bn.running_"

MOMENTUM = 0.1001


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features, momentum=MOMENTUM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        self.bn(x)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
