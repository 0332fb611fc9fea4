"""Computes the gradients in the forward, from the incoming gradient of the previous call.

Mechanism: a harness that draws one incoming gradient for all calls lets the forward do all the work. Caught because
each call has its own.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
EXPECTED = "wrong"
CAUGHT_BY = "gradient of"
KEPT = {}


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.tanh(kernels.scale_rows(weight, x))
        inner = KEPT.get("gradient", x) * (1 - out * out)
        ctx.save_for_backward(kernels.scale_rows(weight, inner), (inner * x).sum(1))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        KEPT["gradient"] = gradient.clone()
        return ctx.saved_tensors


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
