"""Works on a side stream, which the current one waits for.

Suspicious: a stream that nobody joins would hide work from the clock. Honest: this one begins after what the current
stream holds, and `wait_stream` puts all of it before whatever comes next, the stop event included.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        out = torch.empty_like(matrix)
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            kernels.scale_rows_into(diagonal, matrix, out)
        current.wait_stream(self.side)
        return out
