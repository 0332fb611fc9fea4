"""Zero in theory, rounding in practice: the mean of what had its mean taken away."""

import torch
from torch import nn

N = 200


class Model(nn.Module):
    def forward(self, x):
        return (x - x.mean(1, keepdim=True)).mean(1)


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return []
