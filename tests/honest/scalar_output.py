"""A 0-d output from a single block.

Suspicious: one number is easily guessed. Honest: it is the sum.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_sum"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty((), device=x.device)
        kernels.sum(x, out)
        return out
