"""Sum along the rows of a matrix.

    out[i] = sum over j of x[i, j]

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS,)          float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("reduction", "memory-bound")

# 537 MB in, next to nothing out.
ROWS = 16384
COLUMNS = 8192

# "odd": primes, with rows longer than what one round of a block or of a warp takes.
SHAPES = {
    "small": {"ROWS": 12, "COLUMNS": 2048},
    "odd": {"ROWS": 29, "COLUMNS": 3079},
}


class Model(nn.Module):
    """Sums each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sums, of shape (rows,), for x of shape (rows, columns)."""
        return x.sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
