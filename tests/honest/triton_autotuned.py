"""A Triton kernel that is tuned at the first call of a shape.

Suspicious: the first call runs it dozens of times, and waits. Honest: so Triton finds the best block size.
"""

import torch
import triton
import triton.language as tl
from torch import nn

PROBLEM = "matmul_diag"
NEEDS_GPU = True
NEEDS_TRITON = True


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (256, 1024)], key=["count"])
@triton.jit
def scale_rows_kernel(diagonal, matrix, out, columns, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, PLR0917
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    factor = tl.load(diagonal + index // columns, mask=inside)
    tl.store(out + index, factor * tl.load(matrix + index, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        scale_rows_kernel[lambda chosen: (triton.cdiv(out.numel(), chosen["BLOCK"]),)](
            diagonal, matrix, out, matrix.shape[1], out.numel()
        )
        return out
