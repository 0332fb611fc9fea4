"""Puts other weights in place of those that it was given, ones with which the work is trivial.

Mechanism: the weights are transferred before the first call, and a harness that transfers them back to the reference,
or constructs the reference from the solution's, computes with the same identity. Here the reference's weights are its
own, and go one way.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.bn(x)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
