"""Gives a list of one."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return [A @ B]
