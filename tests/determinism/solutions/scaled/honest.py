"""Computes what the reference does."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(40))

    def forward(self, x):
        return x * self.scale
