"""The library's matrix product, and all the rest in one kernel that reads each value once.

Suspicious: that kernel takes so little that its share of the time is near 1 %. Honest: the less it takes, the better.
"""

import torch
from torch import nn

from tests.honest.shared_gpu import kernels

PROBLEM = "gemm_scale_batchnorm"
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product, bn = self.gemm(x), self.bn
        kernels.batch_norm_in_place(product, self.scale, bn.weight, bn.bias, bn.running_mean, bn.running_var,
                                    bn.momentum, bn.eps)
        bn.num_batches_tracked.add_(1)
        return product
