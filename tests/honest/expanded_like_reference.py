"""One value stands for the whole output, with strides of 0, as in the reference.

Suspicious: an output of which a single element was written. Honest: it is what the reference gives.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_expanded"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty((), device=x.device)
        kernels.sum(x, out)
        return out.expand(len(x), len(x))
