"""Copies the diagonal to constant memory before each launch.

Suspicious: memory that outlives the call, outside any tensor. Honest: the copy is part of each call, on its stream.
"""

import torch
from torch import nn

from tests.honest.shared_runtime import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.through_constant_memory(diagonal, matrix)
