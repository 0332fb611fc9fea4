"""Its only output has no elements."""

import torch
from torch import nn

N = 8


class Model(nn.Module):
    def forward(self, x):
        return x[:0] * 2


def get_inputs():
    return [torch.rand(N, 3)]


def get_init_inputs():
    return []
