"""A Triton kernel with a name of its own making, which says what it was compiled for.

Suspicious: a profile shows a name that no function in the file has. Honest: `repr` exists for that.
"""

import torch
import triton
import triton.language as tl
from torch import nn

PROBLEM = "matmul_diag"
NEEDS_GPU = True
NEEDS_TRITON = True


def shown(specialization):  # noqa: ANN001, ANN201
    return f"rows_by_{specialization.constants['BLOCK']}"


@triton.jit(repr=shown)
def scale_rows_kernel(diagonal, matrix, out, columns, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, PLR0917
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    factor = tl.load(diagonal + index // columns, mask=inside)
    tl.store(out + index, factor * tl.load(matrix + index, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        grid = (triton.cdiv(out.numel(), 1024),)
        scale_rows_kernel[grid](diagonal, matrix, out, matrix.shape[1], out.numel(), BLOCK=1024)
        return out
