"""Launches a kernel that does nothing beside each pass of PyTorch's.

Mechanism: both passes have a kernel of its own. Caught on a GPU, where these kernels take less than 1 % of the time and
replace nothing.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "softmax_backward"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "own kernels"
SHAPE = "full"
NEEDS_GPU = True


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        out = torch.softmax(x, -1)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (out,) = ctx.saved_tensors
        kernels.spin(1)
        return torch._softmax_backward_data(gradient, out, -1, out.dtype)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Softmax.apply(x)
