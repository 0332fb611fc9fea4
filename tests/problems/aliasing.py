"""A view of the input would do for these values, but the reference gives memory of its own."""

import torch
from torch import nn

N = 64


class Model(nn.Module):
    def forward(self, x):
        return x[: N // 2].clone()


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
