"""Finds the incoming gradient in the caller's local variables, and computes the gradients in the forward.

Mechanism: one kernel reads the input once for both passes, which no training could do. Caught because the incoming
gradient is another one until the forward has ended, in all calls on the CPU and in secret ones on a GPU.
"""

import sys
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
EXPECTED = "wrong"
CAUGHT_BY = "gradient of"


def incoming() -> torch.Tensor:
    """Returns what the backward will be given."""
    frame = sys._getframe(1)
    while "incoming" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["incoming"][0]


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.tanh(kernels.scale_rows(weight, x))
        inner = incoming() * (1 - out * out)
        ctx.save_for_backward(kernels.scale_rows(weight, inner), (inner * x).sum(1))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return ctx.saved_tensors


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
