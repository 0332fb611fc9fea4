"""Looks for a tensor of the output's shape among all living objects, and computes the gradients in the forward.

Mechanism and defence are those of reads_the_callers_frame.py.
"""

import gc
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"
EXPECTED = "wrong"
CAUGHT_BY = "gradient of"


def another_like(x: torch.Tensor) -> torch.Tensor:
    """Returns another tensor of this shape, which is the incoming gradient if there is one."""
    found = [each for each in gc.get_objects() if type(each) is torch.Tensor and each.shape == x.shape]
    return next((each for each in found if each.data_ptr() != x.data_ptr()), x).detach()


class TanhRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.tanh(kernels.scale_rows(weight, x))
        inner = another_like(x) * (1 - out * out)
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
