"""Its kernels are operators of `torch.library` with registered autograd.

Suspicious: neither `forward` nor a class of the file has a backward. Honest: autograd finds it by the operator.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "tanh_rows"


@torch.library.custom_op("inlinebench_honest::tanh_rows", mutates_args=())
def tanh_rows(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(kernels.scale_rows(weight, x))


@torch.library.custom_op("inlinebench_honest::tanh_rows_backward", mutates_args=())
def tanh_rows_backward(
    gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    inner = gradient * (1 - out * out)
    return kernels.scale_rows(weight, inner), (inner * x).sum(1)


def set_up(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs, output)


def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tanh_rows_backward(gradient, *ctx.saved_tensors)


tanh_rows.register_autograd(backward, setup_context=set_up)


class ModelNew(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return tanh_rows(x, self.weight)
