"""Splits its rows between a stream of the highest priority and the current one, and joins them.

Suspicious: a stream of its own that goes before others. Honest: the call waits for it.
"""

import torch
from torch import nn

from tests.cheats.holding import SideStream
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
NEEDS_GPU = True
SHAPE = "full"

side = SideStream(priority=-5)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out, half = torch.empty_like(matrix), len(matrix) // 2
        side().wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side()):
            kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        kernels.scale_rows_into(diagonal[half:], matrix[half:], out[half:])
        torch.cuda.current_stream().wait_stream(side())
        return out
