"""Computes what the reference does."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.softmax(dim=0)
