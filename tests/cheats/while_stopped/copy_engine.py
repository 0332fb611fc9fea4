"""Sets the inputs to zero by copy engines, behind a kernel that takes half a millisecond.

Mechanism: as `delayed_kernel`, with copies from another tensor and from pinned memory, which no kernel shows. Caught
because reference and comparison read private inputs.
"""

import torch
from torch import nn

from tests.cheats.late_writes import late

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "
NEEDS_GPU = True
CYCLES = 1_000_000


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros_like(diagonal)
        pinned = torch.zeros(matrix.shape, pin_memory=True)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            late.zero_after(zeros, CYCLES)
            diagonal.copy_(zeros)
            matrix.copy_(pinned, non_blocking=True)
        return torch.zeros_like(matrix)
