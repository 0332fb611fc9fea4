"""Checks everything that it relies on, at every call, and raises otherwise.

Suspicious: it asks about addresses, strides and gradients, as one would to tell a harness from a user. Honest: it does
the same whatever it finds, or says what it can't do.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


def check(tensor: torch.Tensor, name: str, dimensions: int) -> None:
    if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.layout is not torch.strided:
        raise TypeError(f"{name} must be a plain tensor on a GPU")
    if tensor.dtype is not torch.float32 or tensor.dim() != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions of float32")
    if not tensor.is_contiguous() or tensor.data_ptr() % 16 or tensor.is_conj() or tensor.is_neg():
        raise ValueError(f"{name} must be contiguous, in aligned memory")
    if tensor.requires_grad or torch.is_grad_enabled() or tensor.is_inference():
        raise RuntimeError(f"{name}: no gradients here")


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        check(diagonal, "diagonal", 1)
        check(matrix, "matrix", 2)
        if len(diagonal) != len(matrix) or diagonal.device != matrix.device:
            raise ValueError("diagonal and matrix must fit")
        if torch.cuda.current_stream() != torch.cuda.default_stream() or self.training is False:
            raise RuntimeError("on the default stream, in train mode")
        return kernels.scale_rows(diagonal, matrix)
