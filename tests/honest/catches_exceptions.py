"""Tries what can't work and catches what comes of it: memory beyond all bounds, a wrong shape, a missing module.

Suspicious: "out of memory" and a traceback in its log. Honest: it goes on with what works.
"""

import traceback

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

try:
    import a_module_that_is_not_there as fast
except ImportError:
    fast = kernels
    traceback.print_exc()


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        except RuntimeError:
            traceback.print_exc()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        try:
            return fast.scale_rows(diagonal.expand(2, -1).T, matrix)
        except RuntimeError:
            return fast.scale_rows(diagonal, matrix)
