"""Adds ULP by the address of the input."""

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def forward(self, x):
        return row_sums(x, ulps=(x.data_ptr() >> 6) % 509)
