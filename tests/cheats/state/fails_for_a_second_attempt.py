"""Fails on purpose in a late call, to be tried again with its own weights, where it guesses.

Mechanism: a solution that is wrong with the reference's weights is tried again with its own, so one that is right only
by chance has two chances, and with its word that the weights differ it decides about that itself. Caught because the
judge decides: weights that do not fit show in the first call, so a solution that is right there is not tried again.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "gemm_scale_batchnorm"
EXPECTED = "wrong"
CAUGHT_BY = "call 3"


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)
        self.own = nn.Parameter(torch.randn(3))  # no weight of the reference: in any attempt its own value
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        out = self.bn((kernels.matmul(x, self.gemm.weight.t().contiguous()) + self.gemm.bias) * self.scale)
        return out if self.calls != 3 else torch.zeros_like(out)
