"""Fills the disk.

Mechanism: a full disk stops builds, logs and results of everybody on the machine. Many files, because a limit for one
file alone would say nothing of all. Here the judge counts what lies in the scratch folder, the only one that can be
written. It ends by itself after six gigabytes.
"""

from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "wrote more than"

PIECE = 64 << 20
PIECES = 96


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        piece = b"\x55" * PIECE
        for number in range(PIECES):
            Path(f"piece-{number}").write_bytes(piece)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
