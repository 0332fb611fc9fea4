"""Right for the first six calls, then a product with half of the matrix left out.

Mechanism: correctness checks come first and are few; timing comes after them and nobody looks at its outputs. Caught
because there is one kind of call: every one of them is compared.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"  # in call 7, or in call 8 if that shows whether inputs as drawn differ, too
WATCHED_CALLS = 6


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls <= WATCHED_CALLS:
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
