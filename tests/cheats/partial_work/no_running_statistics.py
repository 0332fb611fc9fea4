"""Normalizes as asked and leaves the running statistics alone.

Mechanism: batch normalization in train mode also updates its state, which no output of the same call shows. Caught
because the states are compared after every call.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "gemm_scale_batchnorm"
EXPECTED = "wrong"
CAUGHT_BY = "buffer bn.running_mean"


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = kernels.matmul(x, self.gemm.weight.t().contiguous()) + self.gemm.bias
        variance, mean = torch.var_mean(x * self.scale, 0, correction=0)
        normal = (x * self.scale - mean) * torch.rsqrt(variance + self.bn.eps)
        return normal * self.bn.weight + self.bn.bias
