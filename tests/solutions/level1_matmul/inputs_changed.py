"""Scales A in place and back, but not quite."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        A.mul_(3)
        out = (A @ B) / 3
        A.div_(3).add_(1e-7)
        return out
