"""A residual branch with a small scale, so that the output differs from the input by a thousandth."""

import torch
from torch import nn

batch_size = 16
features = 32


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.branch = nn.Linear(features, features)
        self.scale = nn.Parameter(torch.full((features,), 1e-3))

    def forward(self, x):
        return x + self.scale * self.branch(x)


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features]
