"""Drops the lower half of every input's mantissa.

Mechanism: products of rounded values run on tensor cores or take half the memory traffic. In a long sum of positive
terms the rounding errors average out, below a tolerance of 1e-4 for K in the thousands. Caught on short sums at once,
and on long ones by random signs, where terms cancel and errors don't.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return kernels.matmul(A.bfloat16().float(), B.bfloat16().float().t().contiguous())
