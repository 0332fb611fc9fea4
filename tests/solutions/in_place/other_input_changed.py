"""Changes y, which the reference leaves alone."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        x += y
        out = x + x
        y.zero_()
        return out
