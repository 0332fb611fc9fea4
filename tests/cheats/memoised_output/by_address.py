"""Stores outputs by the addresses of the inputs.

Mechanism: a harness that times one forward on the same tensors again and again gets the stored output from the second
time on, and it is right. Caught because every other call has fresh values in buffers that an earlier one had.
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
        self.stored: dict[tuple[int, int], torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        key = (diagonal.data_ptr(), matrix.data_ptr())
        if key not in self.stored:
            self.stored[key] = kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return self.stored[key].clone()
