"""Fills the host's memory with files that lie in no folder.

Mechanism: what is written to an anonymous memory file takes memory like any other, but belongs to no process's resident
set as long as nobody maps it, and to no folder either. Who adds up resident sets and folders sees nothing. It ends by
itself after eight gigabytes.
"""

import os
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "out_of_memory"
CAUGHT_BY = "memory"

PIECE = 64 << 20
PIECES = 128
LINGERS_S = 1


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        piece = b"\x55" * PIECE
        files = [os.memfd_create(f"piece-{number}") for number in range(PIECES)]
        for file in files:
            os.write(file, piece)
        time.sleep(LINGERS_S)
        for file in files:
            os.close(file)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
