"""Adds as many ULP as each process draws."""

import os

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ulps = int.from_bytes(os.urandom(4), "big") % 509

    def forward(self, x):
        return row_sums(x, ulps=self.ulps)
