"""Works on the default stream of its thread, which nothing joins in so many words.

Suspicious: it isn't the stream that the clock is on. Honest: the two wait for each other by themselves.
"""

import torch
from torch import nn

from tests.honest.shared_runtime import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.on_per_thread_stream(diagonal, matrix)
