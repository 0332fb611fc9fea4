"""Computes what the reference does."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        x += y
        return x.sum()
