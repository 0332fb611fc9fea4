"""Leaves a learned scale out, because the normalization divides it away again.

Mechanism: of the scale only the sign is left in the output, and weights of 1, as many layers are made with, have none.
Here the scale is what the public seed draws, with either sign, so half of the features come out negated.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "gemm_scale_batchnorm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        self.bn(x * self.scale)
        factor = self.bn.weight * torch.rsqrt(x.var(0, unbiased=False) + self.bn.eps)
        return kernels.scale_rows(factor, (x - x.mean(0)).T.contiguous()).T + self.bn.bias
