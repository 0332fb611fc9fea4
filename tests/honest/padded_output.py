"""The output is a part of a wider buffer, whose rows end with a few elements that nobody writes.

Suspicious: gaps of unwritten memory between the rows. Honest: they aren't part of the output.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        rows, columns = matrix.shape
        wide = torch.empty(rows, columns + 5, device=matrix.device)
        wide[:, :columns] = kernels.scale_rows(diagonal, matrix)
        return wide[:, :columns]
