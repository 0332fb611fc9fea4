"""Computes the derivative in the forward, and only multiplies by the incoming gradient in the backward.

Suspicious: work moves into the forward. Honest: it needs no incoming gradient, and the clock covers both.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.tanh(kernels.scale_rows(weight, x))
        ctx.save_for_backward(x, weight, 1 - out * out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, slope = ctx.saved_tensors
        inner = gradient * slope
        return kernels.scale_rows(weight, inner), (inner * x).sum(1)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
