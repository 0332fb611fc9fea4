"""Launches a kernel that does nothing beside each pass of PyTorch's.

Mechanism: both passes have a kernel of its own. Caught on a GPU, where these kernels take less than 1 % of the time and
replace nothing.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "own kernels"
SHAPE = "full"
NEEDS_GPU = True


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        out = torch.tanh(weight[:, None] * x)
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        inner = gradient * (1 - out * out)
        kernels.spin(1)
        return weight[:, None] * inner, (inner * x).sum(1)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
