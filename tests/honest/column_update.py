"""Changes one column of its first input in place and returns that input.

Suspicious: it returns its input, which it changed, and writes next to nothing. Honest: the reference does the same.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_column_update"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kernels.add_to_first_column(x, y)
        return x
