"""Euclidean norm of each column of a matrix whose rows are contiguous.

    out[j] = sqrt(sum over i of x[i, j]^2)

    x:   (ROWS, COLUMNS)  float32
    out: (COLUMNS,)       float32

The values of a norm lie COLUMNS values apart in memory.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("reduction", "memory-bound")

# 537 MB in, next to nothing out.
ROWS = 32768
COLUMNS = 4096

# "odd": primes. Both have more rows than one block of a GPU would take.
SHAPES = {
    "small": {"ROWS": 512, "COLUMNS": 160},
    "odd": {"ROWS": 769, "COLUMNS": 131},
}


class Model(nn.Module):
    """Takes the norm along the first dimension."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the norms of the columns, of shape (columns,), for x of shape (rows, columns)."""
        return torch.linalg.vector_norm(x, dim=0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
