"""Starts the running statistics anew in every call, so that they hold the last batch alone.

Mechanism: after one call from the initial state they are right, and a harness that gives every call a fresh model never
sees more. Here the states of a call follow from those of the call before, on both sides.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "buffer bn.running_"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        self.bn.running_mean.zero_()
        self.bn.running_var.fill_(1)
        self.bn(x)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
