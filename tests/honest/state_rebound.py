"""Makes new tensors for its state at every call instead of writing into the old ones.

Suspicious: buffers that are other objects in other memory after each call. Honest: their values are right.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "batch_norm"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, out = self.linear(x), torch.empty_like(x)
        self.running_mean, self.running_var = self.running_mean.clone(), self.running_var.clone()
        ones = torch.ones_like(self.weight)
        kernels.batch_norm(x, ones, self.weight, self.bias, self.running_mean, self.running_var, 0.1, 1e-5, out)
        return out
