"""Sums with CUB, whose kernels are compiled into the solution's library.

Suspicious: no kernel in its source. Honest: the templates make some, for this solution alone.
"""

import torch
from torch import nn

from tests.honest.shared_gpu import kernels

PROBLEM = "honest_sum"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty((), device=x.device)
        kernels.cub_sum(x, out)
        return out
