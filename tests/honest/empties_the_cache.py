"""Hands its cached memory back at every call.

Suspicious: freeing memory waits for the device, and takes away the blocks that were filled with NaN. Honest: it is only
slow.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        torch.cuda.empty_cache()
        return out
