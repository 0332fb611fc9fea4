"""Four outputs that are views of one result: the memory that they take is written once."""

import torch
from torch import nn

N = 8192
SHAPES = {"small": {"N": 48}}


class Model(nn.Module):
    def forward(self, a, b):
        y = a[:, None] * b[None, :]
        return y, y.T, y.reshape(-1), y[: N // 2]


def get_inputs():
    return [torch.rand(N), torch.rand(N)]


def get_init_inputs():
    return []
