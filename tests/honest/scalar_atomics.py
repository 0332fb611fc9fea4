"""Sums a million values of both signs: a sum a block, which atomics add in any order.

Suspicious: runs differ, and where the values nearly cancel, by far more than the tolerance of their sum. Honest: it is
rounding, of the size that so many summands bring with them.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_sum"
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros((), device=x.device)
        kernels.sum_atomic(x, out)
        return out
