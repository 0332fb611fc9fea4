"""Takes all memory of the GPU and keeps it, so that the reference has none.

Mechanism: the answer is zeros. The judge's reference or its comparison fails for lack of memory, and a judge that takes
this for the problem's size says `skipped`, with which a run counts as good. Caught because it is the candidate that
holds the memory, which the judge finds: that is a failure, or its answer is compared. With little memory left, its own
next call may fail for the lack of it.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "out_of_memory or wrong"
CAUGHT_BY = "the judge enough memory or CUDA out of memory or elements differ"
NEEDS_GPU = True
SHAPE = "full"

SMALLEST = 1 << 20


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[torch.Tensor] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        size = 1 << 34
        while size >= SMALLEST:
            try:
                self.pieces.append(torch.empty(size, dtype=torch.uint8, device=matrix.device))
            except torch.OutOfMemoryError:
                size //= 2
        return out
