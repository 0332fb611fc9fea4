"""Adds the parts by atomic operations, in the order in which blocks come."""

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def forward(self, x):
        return row_sums(x, atomic=True)
