"""Splits the columns into more parts if there are fewer rows."""

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def forward(self, x):
        return row_sums(x, parts=16 if x.shape[0] > 8 else 64)
