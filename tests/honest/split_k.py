"""Another order of accumulation: the sums in seven parts, which a second kernel adds.

Suspicious: its rounding differs from the reference's in nearly every element. Honest: it is no larger.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "matmul_transposed_b"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        right = B.T.contiguous()
        parts = torch.empty(7, A.shape[0], B.shape[0], device=A.device)
        out = torch.empty(A.shape[0], B.shape[0], device=A.device)
        kernels.matmul_parts(A, right, parts)
        kernels.sum_parts(parts, out)
        return out
