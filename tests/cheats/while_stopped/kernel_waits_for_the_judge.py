"""Sets the inputs to zero as soon as the judge has written the next ones.

Mechanism: a kernel that outlasts the call sees in the shared inputs themselves what the judge does, and acts between
two of its steps. Caught because the judge compares with private inputs, which no kernel of a solution can write.
"""

import torch
from torch import nn

from tests.cheats.late_writes import late

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "
NEEDS_GPU = True
CYCLES = 20_000_000


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            late.zero_on_change(diagonal, CYCLES)
        return torch.zeros_like(matrix)
