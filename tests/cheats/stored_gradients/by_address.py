"""Stores the gradients by the addresses of the inputs and of the incoming gradient.

Mechanism: buffers that are used again have the addresses of an earlier call. Caught because their contents are new in
each call.
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
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        inner = gradient * (1 - out * out)
        key = (x.data_ptr(), gradient.data_ptr())
        if key not in KEPT:
            KEPT[key] = kernels.scale_rows(weight, inner), (inner * x).sum(1)
        return KEPT[key]


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
