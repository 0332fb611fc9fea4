"""Multiplies in bfloat16 where float32 is due.

Mechanism: 8 bits of each factor and float32 sums, as tensor cores do it: several times faster, and right to two digits.
Tolerances of 1e-2, common where kernels are written by the dozen, let it pass. Here float32 has 1e-4.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return kernels.matmul(A.bfloat16().float(), B.T.bfloat16().float().contiguous())
