"""A named tuple of a sum, a scaled copy, a mask, and a plain number."""

from typing import NamedTuple

import torch
from torch import nn

N = 40


class Answer(NamedTuple):
    total: torch.Tensor
    scaled: torch.Tensor
    positive: torch.Tensor
    count: int


class Model(nn.Module):
    def forward(self, x):
        return Answer(x.sum(), x * 3, x > 0, x.numel())


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
