"""functional.linear, with scale and batch normalization compiled into one kernel.

cuBLAS's product in float32 takes most of the time: TF32 would be faster, but its rounding exceeds the tolerance.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features)
        self.normalized = torch.compile(lambda y: self.bn(y * self.scale), dynamic=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.normalized(self.gemm(x))
