"""Half of the rows on the current stream, half on another, joined at the end.

Suspicious: two kernels at a time, whose durations add up to more than the time between the events. Honest: both begin
after the start and end before the stop.
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
        half = matrix.shape[0] // 2
        current = torch.cuda.current_stream()
        out = torch.empty_like(matrix)
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            kernels.scale_rows_into(diagonal[half:], matrix[half:], out[half:])
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        current.wait_stream(self.side)
        return out
