"""Its process ends if there is only one row."""

import os

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] == 1:
            os.abort()
        return row_sums(x)
