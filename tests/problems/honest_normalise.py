"""Divides by the largest magnitude, which is known only when all has been read."""

import torch
from torch import nn

N = 1000


class Model(nn.Module):
    def forward(self, x):
        return x / x.abs().amax()


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
