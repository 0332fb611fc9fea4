"""The Triton kernel of `triton_from_module.py`, in a module of its own as in a project of several files."""

import triton
import triton.language as tl


@triton.jit
def product(a, b):  # noqa: ANN001, ANN201
    return a * b


@triton.jit
def scale_rows_kernel(diagonal, matrix, out, columns, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, PLR0917
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    factor = tl.load(diagonal + index // columns, mask=inside)
    tl.store(out + index, product(factor, tl.load(matrix + index, mask=inside)), mask=inside)
