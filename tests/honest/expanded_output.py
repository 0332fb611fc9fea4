"""Every column of the output is the same memory: an expanded view with a stride of 0.

Suspicious: far less memory than the output has elements. Honest: all columns of the input are alike here, which the
solution checks instead of assuming, and otherwise it computes all of them.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if bool((matrix == matrix[:, :1]).all()):
            return kernels.scale_rows(diagonal, matrix[:, :1].contiguous()).expand(matrix.shape)
        return kernels.scale_rows(diagonal, matrix)
