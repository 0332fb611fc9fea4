"""Product of a matrix and a vector.

    out[i] = sum over k of A[i, k] * x[k]

    A:   (ROWS, COLUMNS)  float32, row-major
    x:   (COLUMNS,)       float32
    out: (ROWS,)          float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("matmul", "reduction", "memory-bound")

ROWS = 8192
COLUMNS = 16384

# "odd": primes, so that rows begin at every distance from a multiple of 16 bytes, and no block of rows is full.
SHAPES = {
    "small": {"ROWS": 26, "COLUMNS": 3000},
    "odd": {"ROWS": 31, "COLUMNS": 2503},
}


class Model(nn.Module):
    """Multiplies a matrix and a vector."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return A @ x, of shape (ROWS,), for A of shape (ROWS, COLUMNS) and x of shape (COLUMNS,)."""
        return A @ x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """A and x read once, out written once; torch's counter doesn't know this product."""
    return {"bytes": 4 * (ROWS * COLUMNS + COLUMNS + ROWS), "flops": 2 * ROWS * COLUMNS}
