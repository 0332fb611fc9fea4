"""Works on a stream made with `cudaStreamCreate`, which nothing joins in so many words.

Suspicious: no event and no wait. Honest: such a stream and the default one wait for each other by themselves.
"""

import torch
from torch import nn

from tests.honest.shared_runtime import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.on_blocking_stream(diagonal, matrix)
