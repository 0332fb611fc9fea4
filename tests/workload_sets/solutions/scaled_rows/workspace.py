"""Copies as many rows from its workspace as the first call had."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        if not hasattr(self, "first"):
            self.first = x.shape[0]
        out = launch(x, self.weight, torch.empty_like(x))
        out[self.first :] = 0
        return out
