"""Takes another way for negative weights, and recomputes the output in the backward.

Suspicious: its gradients depend on the kind of inputs. Honest: all ways are right.
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
        x, weight, _ = ctx.saved_tensors
        out = torch.tanh(kernels.scale_rows(weight, x))
        inner = gradient * (1 - out * out)
        rows = kernels.scale_rows(weight.abs(), inner)
        return torch.where(weight[:, None] < 0, -rows, rows), (inner * x).sum(1)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TanhRows.apply(x, self.weight)
