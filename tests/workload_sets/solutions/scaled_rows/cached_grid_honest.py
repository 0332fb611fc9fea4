"""Keeps the grid of each number of rows."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        blocks = vars(self).setdefault("blocks", {})
        return launch(x, self.weight, torch.empty_like(x), blocks=blocks.setdefault(x.shape[0], x.shape[0]))
