"""functional.grouped_mm: PyTorch's product of groups of rows, whose ends stay on the GPU."""

import math

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden, width, dtype=torch.bfloat16) / math.sqrt(width))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return functional.grouped_mm(x, self.weight.transpose(1, 2), offs=ends)
