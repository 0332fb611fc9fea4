"""Goes wrong after a call at another size: it counts the sizes that it has met."""

import torch

from tests.workload_sets.rows import Rows, launch

KEPT = {}


class ModelNew(Rows):
    def forward(self, x):
        KEPT.setdefault(x.shape, len(KEPT))
        again = KEPT[x.shape] < len(KEPT) - 1
        return launch(x, self.weight, torch.empty_like(x), columns=x.shape[1] - again)
