"""Right for inputs at addresses it has not seen; half of the work for inputs that come again.

Mechanism: a check draws inputs and throws them away, a timing loop gives the same tensors again and again, so an
address seen before is a timed call. Caught because every other call has the buffers of an earlier one, and every call
is compared.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        address = matrix.data_ptr()
        if address not in self.seen:
            self.seen.add(address)
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
