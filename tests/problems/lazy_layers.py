"""Lazy layers, which get their shapes in the first call."""

import torch
from torch import nn

N = 24


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first, self.bn, self.last = nn.LazyLinear(features), nn.LazyBatchNorm1d(), nn.LazyLinear(4)

    def forward(self, x):
        return self.last(torch.relu(self.bn(self.first(x))))


def get_inputs():
    return [torch.randn(16, N)]


def get_init_inputs():
    return [12]
