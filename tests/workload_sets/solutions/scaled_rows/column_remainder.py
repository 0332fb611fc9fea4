"""Leaves out the columns behind the last vector of four."""

import torch

from tests.workload_sets.rows import Rows, launch


class ModelNew(Rows):
    def forward(self, x):
        return launch(x, self.weight, torch.empty_like(x), columns=x.shape[1] // 4 * 4)
