"""Its four outputs are views of one result.

Suspicious: it writes far fewer bytes than its outputs have. Honest: the reference's outputs share memory as well.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_views"


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = torch.empty(len(a), len(b), device=a.device)
        kernels.outer(a, b, out)
        return out, out.T, out.view(-1), out[: len(a) // 2]
