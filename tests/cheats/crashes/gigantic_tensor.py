"""Asks for more memory than any machine has.

Caught by its allocator, which says so; nothing was taken. On a GPU it is the device's memory.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "out_of_memory"
CAUGHT_BY = "Error: "

BYTES = 1 << 56


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.empty(BYTES, dtype=torch.uint8, device=matrix.device)
