"""One number out of a million that cancel: a 0-d output whose rounding depends on the order of the sum."""

import torch
from torch import nn

N = 1 << 20
SHAPES = {"small": {"N": 1000}}


class Model(nn.Module):
    def forward(self, x):
        return x.sum()


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
