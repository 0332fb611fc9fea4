"""Stores the gradient of the weight, and computes it anew only if a sum over a few inputs changes.

Mechanism: harnesses draw new inputs and forget to draw new incoming gradients, so the inputs tell everything. Caught
because incoming gradients are drawn in each call, and inputs as well.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
EXPECTED = "wrong"
CAUGHT_BY = "gradient of weight"
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
        key = round(float(x[0, :4].abs().sum()))
        if key not in KEPT:
            KEPT[key] = (inner * x).sum(1)
        return kernels.scale_rows(weight, inner), KEPT[key].clone()


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
