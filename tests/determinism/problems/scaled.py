"""Rows that a buffer scales, which no call changes."""

import torch
from torch import nn

ROWS = 6
COLUMNS = 40


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(COLUMNS))

    def forward(self, x):
        return x * self.scale


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
