"""Takes the running variance from an eighth of the batch while a larger call's is still in it.

Mechanism: a running statistic forgets slowly. After a call with inputs scaled up, what a usual call adds is small
against what is there, and so is an error in it. If the tolerance of a state grew with that call, it hides the error for
many calls, at last when the large part is gone and the tolerance is not. The outputs are exact.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "running_var"

HIDES = 3.0


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        variance, mean = torch.var_mean(y, 0, correction=0)
        seen, share = y.var(0), self.bn.momentum
        if bool((self.bn.running_var > HIDES * seen).all()):
            seen = y[::8].var(0)
        self.bn.running_mean.lerp_(mean, share)
        self.bn.running_var.lerp_(seen, share)
        self.bn.num_batches_tracked += 1
        factor = self.bn.weight * torch.rsqrt(variance + self.bn.eps)
        return kernels.scale_rows(factor, (y - mean).T.contiguous()).T + self.bn.bias
