"""The reference changes its first input, so that it is an output, too; the second stays as it is."""

import torch
from torch import nn

N = 64


class Model(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


def get_inputs():
    return [torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return []
