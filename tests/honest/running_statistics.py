"""A kernel updates the running statistics, with the unbiased variance; the counter is a Python number.

Suspicious: state that carries over from call to call, and a buffer of the reference's that is missing. Honest: the
state is the reference's, and `num_batches_tracked` may be absent.
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
        self.register_buffer("ones", torch.ones(features), persistent=False)
        self.batches = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.batches += 1
        x, out = self.linear(x), torch.empty_like(x)
        kernels.batch_norm(x, self.ones, self.weight, self.bias, self.running_mean, self.running_var, 0.1, 1e-5, out)
        return out
