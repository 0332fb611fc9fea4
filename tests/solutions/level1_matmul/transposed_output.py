"""Gives another shape of as many elements."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return (A @ B).T.contiguous().reshape(B.shape[1], A.shape[0])
