"""Inclusive prefix sum along the rows of a matrix.

    out[i, j] = x[i, 0] + x[i, 1] + ... + x[i, j]

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS, COLUMNS)  float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("scan", "memory-bound")

ROWS = 2048
COLUMNS = 32768

# Rows long enough that a block needs several tiles of a few thousand values each, and hands a carry from one to the
# next. "odd": a prime length, so that the last tile is cut, and no row but the first begins at a multiple of 16 bytes.
SHAPES = {
    "small": {"ROWS": 5, "COLUMNS": 12288},
    "odd": {"ROWS": 7, "COLUMNS": 10007},
}


class Model(nn.Module):
    """Inclusive prefix sum along the last dimension."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the prefix sums of each row, of the shape of x."""
        return torch.cumsum(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
