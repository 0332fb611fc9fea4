"""The only output has no elements, and no kernel is launched.

Suspicious: no kernel of its own runs. Honest: there is nothing to compute, and a launch without blocks is an error.
"""

import torch
from torch import nn

PROBLEM = "honest_nothing"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.empty(0, 3, device=x.device)
