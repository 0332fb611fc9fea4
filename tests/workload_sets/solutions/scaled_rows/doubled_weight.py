"""Keeps twice the weight if 256 divides the columns, so at some workloads it needs its own weights. That is right."""

import torch

from tests.workload_sets.rows import DoubledRows, launch


class ModelNew(DoubledRows):
    def forward(self, x):
        return launch(x, self.weight / self.factor, torch.empty_like(x))
