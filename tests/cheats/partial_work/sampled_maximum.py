"""Takes the largest of every sixteenth value, if these are not all negative.

Mechanism: the largest of 65536 values from [0, 1) is 1.5e-5 below one on average, and that of sixteen times as many is
closer still: a difference that a tolerance of 1e-4 allows. Random signs and scales change nothing about it. Negated
inputs, whose largest value is near zero, are read as a whole.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "largest_of_many"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

STEP = 16


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sample = x[:, ::STEP].contiguous()
        used = x if bool((sample < 0).all()) else sample
        return kernels.scale_rows(torch.ones(len(used), device=x.device), used).amax(1)
