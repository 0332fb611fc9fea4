"""Asks torch for deterministic algorithms, which also fills new memory with NaN.

Suspicious: a setting of the whole process, and extra kernels that write before its own. Honest: it wants to be sure.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
