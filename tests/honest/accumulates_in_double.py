"""Accumulates in float64.

Suspicious: it differs from the reference wherever that rounds. Honest: it is the more exact of the two.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "matmul_transposed_a"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = torch.empty(A.shape[1], B.shape[1], device=A.device)
        kernels.matmul_double(A.T.contiguous(), B, out)
        return out
