"""torch.mm on strips of rows, each only as wide as its part of the triangle.

PyTorch has no product of two triangular matrices. Strips leave out most of the products with zeros, 60 % of a full
product, and each one is still large enough for cuBLAS to fill the GPU.
"""

import torch
from torch import nn

STRIPS = 8


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = A.shape[0]
        rows = -(-size // STRIPS)
        out = torch.zeros_like(A)
        for begin in range(0, size, rows):
            end = min(begin + rows, size)
            torch.mm(A[begin:end, :end], B[:end, :end], out=out[begin:end, :end])
        return out
