"""A Triton kernel below two other decorators: it is tuned, and a heuristic sets one of its constants.

Suspicious: three decorators deep, and the first call runs it many times. Honest: so Triton's own examples look.
"""

import torch
import triton
import triton.language as tl
from torch import nn

PROBLEM = "matmul_diag"
NEEDS_GPU = True
NEEDS_TRITON = True


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, num_warps=warps) for size in (512, 1024) for warps in (4, 8)],
    key=["count"],
)
@triton.heuristics({"WHOLE": lambda arguments: arguments["count"] % arguments["BLOCK"] == 0})
@triton.jit
def scale_rows_kernel(  # noqa: ANN201, PLR0917
    diagonal, matrix, out, columns, count, BLOCK: tl.constexpr, WHOLE: tl.constexpr  # noqa: ANN001
):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WHOLE:
        factor = tl.load(diagonal + index // columns)
        tl.store(out + index, factor * tl.load(matrix + index))
    else:
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
