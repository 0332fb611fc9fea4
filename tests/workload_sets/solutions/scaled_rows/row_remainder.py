"""Leaves out the rows of a block that is not full."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        return launch(x, self.weight, torch.empty_like(x), blocks=x.shape[0] // 8, per_block=8)
