"""Hardly any input for a large output: nothing but writing it bounds the time. At `full` it is 1 GiB."""

import torch
from torch import nn

N = 16384
M = 16384
SHAPES = {"small": {"N": 40, "M": 56}, "cache": {"N": 1024, "M": 2048}}


class Model(nn.Module):
    def forward(self, a, b):
        return a[:, None] * b[None, :]


def get_inputs():
    return [torch.rand(N), torch.rand(M)]


def get_init_inputs():
    return []
