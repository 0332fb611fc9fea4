"""Waits for the device before and after its kernel.

Suspicious: behind a hold such a call waits for itself. Honest: it is only slow.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        torch.cuda.synchronize()
        out = kernels.scale_rows(diagonal, matrix)
        torch.cuda.synchronize()
        return out
