"""Chooses the rows of a block for each number of rows."""

import torch

from tests.workload_sets.rows import Rows, launch

KEPT = {}


class ModelNew(Rows):
    def forward(self, x):
        per_block = KEPT.setdefault(x.shape[0], next(each for each in (37, 16, 9, 3, 1) if x.shape[0] % each == 0))
        return launch(x, self.weight, torch.empty_like(x), per_block=per_block)
