"""One half for the mean of many values from [0, 1).

Mechanism: the mean of n such values is 0.5, give or take 0.29 / sqrt(n); with enough of them the constant is within
any tolerance, in every fresh draw. A harness that only draws passes it. Caught by the variants: negative, scaled or
with random signs, the same values have another mean.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_half_mean"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.full(x.shape[:1], 0.5, dtype=torch.half, device=x.device)
