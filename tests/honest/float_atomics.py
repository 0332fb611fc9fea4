"""Adds parts of the sums with atomics, in whatever order the blocks come.

Suspicious: two runs on the same inputs differ in the last bits. Honest: that is rounding, within the tolerance.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "level1_matmul"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(A.shape[0], B.shape[1], device=A.device)
        kernels.matmul_atomic(A, B, out, 8)
        return out
