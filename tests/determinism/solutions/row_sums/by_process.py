"""Adds as many ULP as each process draws."""

import os

from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        number = int.from_bytes(os.urandom(4), "big")
        self.parts, self.ulps = 16 + number // 509 % 48, number % 509  # two processes hardly ever draw the same

    def forward(self, x):
        return row_sums(x, parts=self.parts, ulps=self.ulps)
