"""Does not update its running statistics in held calls.

Mechanism: statistics are no output, so a time that ends with the outputs does not contain their update. Caught because
states are copied before the time is taken and compared in held calls, too.

True time: that of a batch normalization with its statistics.
"""

import torch
from torch import nn

from tests.cheats.holding import in_held_call
from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = kernels.matmul(x, self.linear.weight.T.contiguous()) + self.linear.bias
        if not in_held_call():
            return self.bn(product)
        return nn.functional.batch_norm(product, None, None, self.bn.weight, self.bn.bias, training=True)
