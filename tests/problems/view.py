"""The reference gives a view of its input, so a solution may, too."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)


def get_inputs():
    return [torch.rand(5, 7)]


def get_init_inputs():
    return []
