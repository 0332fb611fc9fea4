"""Parameters and buffers under names of its own, in another order.

Suspicious: nothing matches the reference by name. Honest: they are drawn as the reference draws them.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "gemm_scale_batchnorm"


class ModelNew(nn.Module):
    def __init__(self, ins: int, outs: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        drawn = nn.Linear(ins, outs)
        self.factors = nn.Parameter(torch.randn(shape))
        self.offsets, self.matrix = nn.Parameter(drawn.bias.detach()), nn.Parameter(drawn.weight.detach())
        self.gamma, self.beta = nn.Parameter(torch.ones(outs)), nn.Parameter(torch.zeros(outs))
        self.register_buffer("spread", torch.ones(outs))
        self.register_buffer("centre", torch.zeros(outs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = torch.empty(x.shape[0], len(self.gamma), device=x.device)
        out = torch.empty_like(product)
        kernels.linear(x, self.matrix, self.offsets, False, product)
        kernels.batch_norm(product, self.factors, self.gamma, self.beta, self.centre, self.spread, 0.1, 1e-5, out)
        return out
