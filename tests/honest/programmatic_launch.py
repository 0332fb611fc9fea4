"""The second kernel may begin before the first one has ended (programmatic dependent launch).

Suspicious: the kernels overlap on one stream, so their durations add up to more than the time. Honest: the second one
waits for the first one's writes before it reads them.
"""

import torch
from torch import nn

from tests.honest.shared_gpu import kernels

PROBLEM = "matmul_diag"
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        kernels.programmatic(diagonal, matrix, out)
        return out
