"""Takes B for its transpose."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return A @ B.reshape(B.shape[1], B.shape[0]).T
