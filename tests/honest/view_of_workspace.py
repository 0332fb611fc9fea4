"""The output begins somewhere in a large workspace that the solution keeps.

Suspicious: it has a storage offset, and shares its storage with scratch data. Honest: what it covers is all written.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.workspace = torch.empty(0)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.workspace.numel() < matrix.numel() + 64:
            self.workspace = torch.empty(matrix.numel() + 64, device=matrix.device)
        out = self.workspace[64 : 64 + matrix.numel()].view(matrix.shape)
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
