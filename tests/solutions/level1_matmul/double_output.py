"""Gives a wider dtype."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return A.double() @ B.double()
