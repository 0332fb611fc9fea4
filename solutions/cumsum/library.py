"""torch.cumsum, compiled.

TorchInductor makes one associative scan of each row, which reads and writes it once.
"""

import torch
from torch import nn


@torch.compile(dynamic=False)
def cumsum(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, dim=-1)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cumsum(x)
