"""Reads the largest magnitude on the host, and scales by it.

Suspicious: `.item()` waits for the device. Honest: the host needs the value for the second launch.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_normalise"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest, out = torch.empty((), device=x.device), torch.empty_like(x)
        kernels.largest_magnitude(x, largest)
        kernels.scale(x, 1 / largest.item(), out)
        return out
