"""Blocks of eight rows, with the last one that is not full."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        return launch(x, self.weight, torch.empty_like(x), per_block=8)
