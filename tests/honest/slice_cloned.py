"""Copies half of its input.

Suspicious: the values lie in the shared input already, so an answer could point there. Honest: the copy is made.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "aliasing"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.ones(1, device=x.device), x[None, : len(x) // 2].contiguous())[0]
