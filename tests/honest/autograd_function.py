"""Its kernel is the forward pass of an autograd function, with a backward one that nobody asks for.

Suspicious: it saves the inputs for later. Honest: without gradients nothing is kept.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ScaleRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(diagonal, matrix)
        return kernels.scale_rows(diagonal, matrix)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        diagonal, matrix = ctx.saved_tensors
        return (gradient * matrix).sum(1), kernels.scale_rows(diagonal, gradient.contiguous())


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return ScaleRows.apply(diagonal.detach().requires_grad_(), matrix).detach()
