"""Addition and functional.rms_norm, compiled.

TorchInductor adds and normalizes in one kernel, which reads both inputs once.
"""

import torch
from torch import nn
from torch.nn import functional


@torch.compile(dynamic=False)
def add_and_normalize(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x + residual
    return functional.rms_norm(total, weight.shape, weight, eps), total


class ModelNew(nn.Module):
    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return add_and_normalize(x, residual, self.weight, self.eps)
