"""The sum along the rows, compiled.

TorchInductor's reduction comes a little nearer to the bandwidth of memory than the eager one.
"""

import torch
from torch import nn


@torch.compile(dynamic=False)
def row_sum(x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=1)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return row_sum(x)
