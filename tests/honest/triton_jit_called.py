"""Calls `triton.jit` as a function, on a plain one, under another name.

Suspicious: no function in the file has the decorator, and the name that is launched isn't the kernel's. Honest: a
decorator is a function.
"""

import torch
import triton
import triton.language as tl
from torch import nn

PROBLEM = "matmul_diag"
NEEDS_GPU = True
NEEDS_TRITON = True


def scale_rows_kernel(diagonal, matrix, out, columns, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, PLR0917
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    factor = tl.load(diagonal + index // columns, mask=inside)
    tl.store(out + index, factor * tl.load(matrix + index, mask=inside), mask=inside)


compiled = triton.jit(scale_rows_kernel)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        grid = (triton.cdiv(out.numel(), 1024),)
        compiled[grid](diagonal, matrix, out, matrix.shape[1], out.numel(), BLOCK=1024)
        return out
