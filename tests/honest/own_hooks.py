"""Registers hooks on itself, before and after `forward`; the second one makes the output.

Suspicious: what `forward` returns is not what the caller gets. Honest: hooks are part of calling a module.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


def compute(module: nn.Module, given: tuple[torch.Tensor, ...], scales: torch.Tensor) -> torch.Tensor:
    return kernels.scale_rows(scales, given[1])


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_forward_pre_hook(self.count)
        self.register_forward_hook(compute)

    def count(self, module: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        self.calls += 1

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal
