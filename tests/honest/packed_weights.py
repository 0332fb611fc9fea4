"""Transposes its weight in the constructor, in the layer that has it.

Suspicious: it has the name and the shape of the reference's, but not its values, so overwriting it with those would be
wrong. Honest: packing weights ahead is no work of the call.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "batch_norm"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear, self.bn = nn.Linear(features, features), nn.BatchNorm1d(features)
        self.linear.weight.data = self.linear.weight.detach().T.contiguous()
        self.register_buffer("ones", torch.ones(features), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn, product, out = self.bn, torch.empty_like(x), torch.empty_like(x)
        kernels.linear(x, self.linear.weight, self.linear.bias, True, product)
        kernels.batch_norm(product, self.ones, bn.weight, bn.bias, bn.running_mean, bn.running_var, 0.1, 1e-5, out)
        bn.num_batches_tracked.add_(1)
        return out
