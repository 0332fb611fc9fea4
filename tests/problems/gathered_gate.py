"""Rows that are gathered by an integer input, and their signs. A call is a forward and a backward.

The integer input has no gradient, the last input and the second parameter do not matter, and the second output has no
backward.
"""

import torch
from torch import nn

BACKWARD = True
N = 24


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))
        self.spare = nn.Parameter(torch.randn(3, size))

    def forward(self, x, rows, unused):
        hidden = torch.tanh(x[rows] * self.weight)
        return hidden, hidden > 0


def get_inputs():
    return [torch.randn(32, N), torch.randint(0, 32, (40,)), torch.randn(20)]


def get_init_inputs():
    return [N]
