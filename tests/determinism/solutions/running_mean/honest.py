"""Computes what the reference does."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(40))

    def forward(self, x):
        self.mean.lerp_(x.mean(dim=0), 0.25)
        return x - self.mean
