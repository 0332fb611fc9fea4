"""Marks its work for a profiler.

Suspicious: it names a stretch of a profile as it likes. Honest: the name is the kernel's.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with torch.profiler.record_function("scale_rows"), torch.autograd.profiler.emit_nvtx(enabled=False):
            return kernels.scale_rows(diagonal, matrix)
