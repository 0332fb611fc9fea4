"""Writes four elements a thread, past the caches.

Suspicious: a vector type over plain floats, and stores with a hint. Honest: alignment allows the one, and the other
changes no value.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_outer"


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(len(a), len(b), device=a.device)
        kernels.outer(a, b, out)
        return out
