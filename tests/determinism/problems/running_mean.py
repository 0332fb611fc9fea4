"""Rows without a mean that each call updates."""

import torch
from torch import nn

ROWS = 6
COLUMNS = 40


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(COLUMNS))

    def forward(self, x):
        self.mean.lerp_(x.mean(dim=0), 0.25)
        return x - self.mean


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
