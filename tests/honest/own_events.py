"""Times itself with events, and reports the last call's time at the next one.

Suspicious: it looks at a clock. Honest: what it sees changes nothing.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[torch.cuda.Event] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.events and self.events[1].query():
            print(f"the last call took {self.events[0].elapsed_time(self.events[1])} ms")
        self.events = [torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)]
        self.events[0].record()
        out = kernels.scale_rows(diagonal, matrix)
        self.events[1].record()
        return out
