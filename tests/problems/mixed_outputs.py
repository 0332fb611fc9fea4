"""A tuple of a 0-d float, integers, bools, a float that is no tensor, and a dict."""

import torch
from torch import nn

N = 40


class Model(nn.Module):
    def forward(self, x):
        return x.sum(), x.argsort(), x > 0, 0.1 + 0.2, {"shape": "flat", "largest": x.amax()}


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
