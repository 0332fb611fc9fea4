"""Takes the memory of the GPU piece by piece until there is none left, and takes one more.

Caught by torch's allocator, whose error is the candidate's own.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "out_of_memory"
CAUGHT_BY = "OutOfMemoryError"
NEEDS_GPU = True

PIECE_BYTES = 1 << 30


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        pieces = []
        while True:
            pieces.append(torch.empty(PIECE_BYTES, dtype=torch.uint8, device=matrix.device))
