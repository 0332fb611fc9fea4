"""The only output has no elements, so no kernel has anything to do.

Suspicious: no kernel of its own contributes to the output. Honest: none can; it launches one block all the same,
because its kernel takes any number of elements.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_nothing"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, total = torch.empty(0, 3, device=x.device), torch.empty((), device=x.device)
        kernels.sum(out, total)
        return out
