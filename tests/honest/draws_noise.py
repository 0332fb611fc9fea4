"""Draws its noise into a buffer that it keeps, with torch's generator.

Suspicious: random numbers, and memory that outlives the call. Honest: they are the reference's, drawn anew each time.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_noise"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.noise = torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.noise.shape != x.shape:
            self.noise = torch.empty_like(x)
        self.noise.uniform_()
        out = torch.empty_like(x)
        kernels.multiply(x, self.noise, 2.0, out)
        return out
