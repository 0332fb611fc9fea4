"""functional.linear, with group normalization and clamp compiled into one pass over its output.

cuBLAS's product in float32 takes most of the time: TF32 would be faster, but its rounding exceeds the tolerance.
"""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def __init__(self, width: int, features: int, groups: int, low: float, high: float) -> None:
        super().__init__()
        self.groups, self.low, self.high = groups, low, high
        self.gemm = nn.Linear(width, features)
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.randn(features))
        self.normalized = torch.compile(self._normalized, dynamic=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.normalized(self.gemm(x))

    def _normalized(self, y: torch.Tensor) -> torch.Tensor:
        return functional.hardtanh(functional.group_norm(y, self.groups, self.weight, self.bias), self.low, self.high)
