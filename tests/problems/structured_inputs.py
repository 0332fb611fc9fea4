"""A symmetric and a lower triangular matrix; a solution may rely on both."""

import torch
from torch import nn

N = 24


class Model(nn.Module):
    def forward(self, symmetric, lower):
        return symmetric @ lower


def get_inputs():
    half = torch.rand(N, N)
    return [half + half.T, torch.rand(N, N).tril()]


def get_init_inputs():
    return []
