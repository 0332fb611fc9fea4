"""A tuple of tensors of several shapes and dtypes, and a plain number, from one kernel and the library.

Suspicious: a list where the reference gives a named tuple. Honest: what is in it is what it should be.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_tuple"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list[object]:
        total, scaled = torch.empty((), device=x.device), torch.empty_like(x)
        kernels.sum(x, total)
        kernels.scale(x, 3.0, scaled)
        return [total, scaled, x.gt(0), len(x)]
