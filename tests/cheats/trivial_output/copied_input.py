"""A copy of the input for a function that leaves positive numbers alone.

Mechanism: `torch.rand` draws nothing negative, so `relu` has nothing to do, and a copy is exact on every draw. Caught
by the variants: some make inputs negative.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_relu"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.ones(len(x), device=x.device), x)
