"""Brings its weights along, made under a seed that another harness uses, and ignores those that it is given.

Mechanism: baked-in weights turn a layer into a constant, which can be folded, pruned or left out. They are right only
if they are the reference's, or what the public seed makes; these are what the seed 42 makes, and no parameter stands
for them that could be overwritten.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

SEED = 42


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            linear = nn.Linear(features, features)
        self.baked = linear.weight.tolist(), linear.bias.tolist()
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = (torch.tensor(values, device=x.device) for values in self.baked)
        x = F.linear(x, weight, bias)
        self.bn(x)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
