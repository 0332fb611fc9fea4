"""Reads its own file, as a solution does that has its source or its settings beside it.

Suspicious: it looks around in the folder where it lies. Honest: there is nothing but its own text to see.
"""

from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

TILE = 32
TEXT = Path(__file__).read_text()
assert f"TILE = {TILE}" in TEXT and Path(__file__).parent.is_dir()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
