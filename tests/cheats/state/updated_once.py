"""Updates the running statistics in the first call and never again.

Mechanism: a harness that compares states once, after one call, sees them right; so does one that compares nothing but
outputs, which in train mode don't depend on them. Here states carry over and are compared after every call.
"""

import torch
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
        self.updated = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if not self.updated:
            self.bn(x)
            self.updated = True
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
