"""Ones for the sigmoid of a large sum.

Mechanism: the sums of the inputs as drawn are large, and a sigmoid of them rounds to exactly 1, so no tolerance
however tight tells the constant apart. Caught by the variants: negative inputs give zeros, random signs something in
between.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_saturated"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.ones(x.shape[:1], device=x.device)
