"""Sets the inputs to zero from a kernel that ends a millisecond after the call.

Mechanism: a stopped process does not stop its GPU. A kernel on a side stream outlasts the call, so that inputs that are
read later by reference and comparison are zero, as the answer is. Caught because those read private inputs.
"""

import torch
from torch import nn

from tests.cheats.late_writes import late

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "
NEEDS_GPU = True
CYCLES = 2_000_000


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            late.zero_after(diagonal, CYCLES)
        return torch.zeros_like(matrix)
