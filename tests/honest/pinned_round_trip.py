"""The result goes through pinned host memory without the host ever waiting.

Suspicious: an asynchronous copy that the host reads too early would be stale. Honest: the host doesn't read it; both
copies are ordered by the stream.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.staging = torch.empty(0)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.staging.shape != matrix.shape:
            self.staging = torch.empty(matrix.shape).pin_memory()
        self.staging.copy_(kernels.scale_rows(diagonal, matrix), non_blocking=True)
        return torch.empty_like(matrix).copy_(self.staging, non_blocking=True)
