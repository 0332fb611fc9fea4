"""The library's matrix product, with everything after it in one kernel of its own.

Suspicious: most of the work is the reference's own. Honest: fusing the rest is what a person would do here.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "gemm_scale_batchnorm"


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = torch.matmul(x, self.gemm.weight.T).add_(self.gemm.bias)
        bn, out = self.bn, torch.empty_like(product)
        kernels.batch_norm(product, self.scale, bn.weight, bn.bias, bn.running_mean, bn.running_var, bn.momentum,
                           bn.eps, out)
        bn.num_batches_tracked.add_(1)
        return out
