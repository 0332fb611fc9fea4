"""Right for negative or large inputs; half of the work for values that look drawn.

Mechanism: special values are tests, made to find mistakes; timing uses what `torch.rand` gives. Caught because inputs
as they were drawn are compared just like their variants.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not (0.9 < float(matrix.amax()) <= 1 and float(matrix.amin()) >= 0):
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
