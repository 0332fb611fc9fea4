"""The right values in column-major order: accepted, converted and noted."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return (B.T @ A.T).T
