"""A model with a function of its own over its modules, as minGPT's block has one: a copy of it uses the original's.

Its batch norm has a state, so that it shows whose modules run.
"""

import torch
from torch import nn

N = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"widen": nn.Linear(N, 2 * N), "norm": nn.BatchNorm1d(2 * N)})
        parts = self.parts
        self.block = lambda x: parts["norm"](parts["widen"](x))

    def forward(self, x):
        return self.block(x)


def get_inputs():
    return [torch.rand(8, N)]


def get_init_inputs():
    return []
