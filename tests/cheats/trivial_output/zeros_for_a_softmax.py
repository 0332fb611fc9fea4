"""Zeros for probabilities that are all small.

Mechanism: with thousands of classes every probability is below 1e-3, so an absolute tolerance of that size passes
zeros, on any inputs. Caught because no tolerance here is absolute.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_softmax"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(x)
