"""One output without elements, one that sums over none.

Suspicious: there is nothing to compare in the first, and a constant would do for the second. Honest: so it is.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "empty_output"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, nothing: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.empty((), device=x.device)
        kernels.sum(nothing, total)
        return torch.empty(0, 3, device=x.device), total
