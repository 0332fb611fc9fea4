"""Transpose of a matrix, out of place.

    out[j, i] = x[i, j]

    x:   (ROWS, COLUMNS)  float32
    out: (COLUMNS, ROWS)  float32, contiguous
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("layout", "memory-bound")

ROWS = 8192
COLUMNS = 8192

# "small": multiples of four, but of no usual tile size. "odd": primes.
SHAPES = {
    "small": {"ROWS": 140, "COLUMNS": 204},
    "odd": {"ROWS": 131, "COLUMNS": 197},
}


class Model(nn.Module):
    """Transposes a matrix into contiguous memory."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the transpose of x, of shape (COLUMNS, ROWS), contiguous."""
        return x.t().contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
