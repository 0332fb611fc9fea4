"""Has no running statistics at all."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        x = self.linear(x)
        return (x - x.mean(0)) * torch.rsqrt(x.var(0, unbiased=False) + 1e-5)
