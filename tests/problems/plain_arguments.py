"""Inputs that are no tensors: a float, an integer, a bool, None, a list of tensors."""

import torch
from torch import nn

N = 48


class Model(nn.Module):
    def forward(self, x, factor: float, times: int, negate: bool, bias, others):
        for _ in range(times):
            x = x * factor
        x = x + sum(others)
        return -x if negate else x


def get_inputs():
    return [torch.randn(N), 1.5, 2, True, None, [torch.randn(N), torch.randn(N)]]


def get_init_inputs():
    return []
