"""An output without elements, and an input without any."""

import torch
from torch import nn

N = 8


class Model(nn.Module):
    def forward(self, x, nothing):
        return x[:0], nothing.sum()


def get_inputs():
    return [torch.rand(N, 3), torch.empty(0, 5)]


def get_init_inputs():
    return []
