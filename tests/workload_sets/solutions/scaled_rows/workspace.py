"""Keeps a workspace that only grows, but clears only what the first call needed."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        if not hasattr(self, "first"):
            self.first = x.shape[0]
        out = torch.zeros_like(x)
        launch(x, self.weight, out)
        return out if x.shape[0] <= self.first else out[: self.first].repeat(-(-x.shape[0] // self.first), 1)[: x.shape[0]]
