"""Gives another dtype."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return (A @ B).half()
