"""Works on a side stream, tied to the current one by two events.

Suspicious: no `wait_stream` and no synchronisation in sight. Honest: an event recorded on either side and waited for
on the other orders them just as well.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side, self.ready, self.done = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        self.ready.record()
        self.side.wait_event(self.ready)
        with torch.cuda.stream(self.side):
            kernels.scale_rows_into(diagonal, matrix, out)
            self.done.record()
        torch.cuda.current_stream().wait_event(self.done)
        return out
