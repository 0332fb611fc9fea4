"""Leaves out the gradient of the weight unless the number of the call is one of the first eight.

Mechanism: gradients are checked in the first calls, and later ones are timed. Caught because all calls are compared.
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
        KEPT["calls"] = KEPT.get("calls", 0) + 1
        return kernels.scale_rows(weight, inner), (inner * x).sum(1) if KEPT["calls"] < 9 else None


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
