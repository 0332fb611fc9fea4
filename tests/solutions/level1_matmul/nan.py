"""Leaves one element unwritten."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        out = A @ B
        out[-1, -1] = float("nan")
        return out
