"""A model that copy.deepcopy refuses: it holds a tensor with a history. Its buffer appears in the first forward."""

import torch
from torch import nn

N = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N))
        self.squared = self.weight.square()

    def forward(self, x):
        if not hasattr(self, "calls"):
            self.register_buffer("calls", torch.zeros(()))
        self.calls += 1
        return x * self.squared


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
