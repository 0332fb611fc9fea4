"""Gives the right output and forgets what happens to x."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x + y) * 2
