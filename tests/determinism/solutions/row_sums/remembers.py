"""Is wrong if it gets the inputs of the call before."""

import torch
from torch import nn

from tests.determinism.sums import row_sums


class ModelNew(nn.Module):
    seen = None

    def forward(self, x):
        again = self.seen is not None and torch.equal(self.seen, x)
        self.seen = x.clone()
        return row_sums(x) * (2 if again else 1)
