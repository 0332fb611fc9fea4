"""Returns a tensor that knows what it will hold, and holds nothing yet.

Mechanism: torch has plain tensors without values: ones known to be zero, ones that replay what was done to their
views. Type, shape and dtype are right, no kernel runs, and whoever copies them with torch does the work. Caught
because an output must be values in memory.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "zero_output"
EXPECTED = "wrong"
CAUGHT_BY = "values are not computed yet"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch._efficientzerotensor(x.shape, device=x.device)
