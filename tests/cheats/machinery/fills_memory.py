"""Fills the host's memory.

Mechanism: where memory runs out, the kernel kills whichever process it finds largest, the judge perhaps. Here the judge
watches what a candidate takes, against `--host-memory`. It ends by itself after ten gigabytes.
"""

import mmap

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "out_of_memory"
CAUGHT_BY = "memory"

PIECE = 128 << 20
PIECES = 80


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kept = []
        for _ in range(PIECES):
            kept.append(mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            for page in range(0, PIECE, mmap.PAGESIZE):
                kept[-1][page] = 1
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
