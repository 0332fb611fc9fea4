"""Multiplies in half precision where float32 is due.

Mechanism: 11 bits of each factor and float32 sums. On inputs as drawn, all positive, the errors of the sum nearly
cancel against its size, and a tolerance of 1e-3 sees nothing. Here it is 1e-4 of the output's own root mean square, and
on inputs with random signs the sums are small and the errors are not.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "level1_matmul"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return kernels.matmul(A.half().float(), B.half().float())
