"""Computes only the gradients that autograd needs, and takes another way without any.

Suspicious: it does something else if no gradient is required. Honest: that is right as well.
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
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        inner = gradient * (1 - out * out)
        return (kernels.scale_rows(weight, inner) if ctx.needs_input_grad[0] else None,
                (inner * x).sum(1) if ctx.needs_input_grad[1] else None)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not (x.requires_grad or self.weight.requires_grad):
            return torch.tanh(kernels.scale_rows(self.weight, x))
        return TanhRows.apply(x, self.weight)
