"""Leaves the bias of the linear layer out, because the normalization takes it away again.

Mechanism: every output is right without it, and one pass over the features is saved. The running mean is not: it is the
mean with the bias. Here states are compared after every call.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "buffer bn.running_mean"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.linear(x, self.linear.weight)
        self.bn(x)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
