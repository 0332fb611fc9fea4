"""A copy of the input for a residual block whose branch has a small scale.

Mechanism: the block adds a thousandth of its branch to the input, so leaving the branch out stays within a tolerance
of 1e-2. Caught by the tolerance of float32 here, 1e-4. (A scale of 1e-5 would be beyond any tolerance's reach.)
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_layer_scale"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.ones(len(x), device=x.device), x)
