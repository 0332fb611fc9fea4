"""Its own kernel for the products, and `torch.compile` for the little that follows.

Suspicious: compiling starts processes, writes files, and takes seconds at the first call. Honest: what is compiled is
the smaller part. TorchInductor compiles in worker processes if they have started in time, as they have for a solution
that compiles for several sizes. Inside the sandbox they do not always see the GPU.
"""

import torch
from torch import nn
from torch._inductor.async_compile import AsyncCompile

from tests.honest.shared import kernels

PROBLEM = "gemm_scale_batchnorm"
NEEDS_GPU = True
NEEDS_TRITON = True


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)
        AsyncCompile.wait_pool_ready()
        self.tail = torch.compile(lambda x: self.bn(x * self.scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = torch.empty(x.shape[0], len(self.scale), device=x.device)
        kernels.linear(x, self.gemm.weight, self.gemm.bias, False, product)
        return self.tail(product)
