"""Batch normalization in train mode: its running statistics carry over from call to call."""

import torch
from torch import nn

batch_size = 64
features = 12


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x):
        return self.bn(self.linear(x))


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [features]
