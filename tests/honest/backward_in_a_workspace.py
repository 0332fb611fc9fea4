"""Keeps the gradients of all calls in the same memory.

Suspicious: the buffers hold the gradients of the last call when the backward begins. Honest: it computes them anew.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
KEPT = {}


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.tanh(kernels.scale_rows(weight, x))
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        inner = gradient * (1 - out * out)
        weight_gradient = KEPT.setdefault("weight", torch.empty_like(weight))
        return kernels.scale_rows(weight, inner), torch.sum(inner * x, 1, out=weight_gradient)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
