"""Residual addition followed by RMS normalization, as between the blocks of a transformer.

    total = x + residual
    out[i, j] = total[i, j] / sqrt(mean_j(total[i, j]^2) + eps) * weight[j]

    x, residual: (ROWS, COLUMNS)  float32
    weight:      (COLUMNS,)       float32
    out, total:  (ROWS, COLUMNS)  float32    both are outputs: total is the residual of the next block

The weight is drawn at random, because with ones a solution that leaves it out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("normalization", "reduction", "fusion", "memory-bound")

ROWS = 8192
COLUMNS = 4096

# "odd": prime row length, so that no row but the first begins at a multiple of 16 bytes, and a prime number of rows.
SHAPES = {
    "small": {"ROWS": 24, "COLUMNS": 512},
    "odd": {"ROWS": 31, "COLUMNS": 1031},
}


class Model(nn.Module):
    """Adds a residual, and normalizes each row of the sum by its root mean square."""

    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the normalized sum and the sum itself, both of the shape of x."""
        total = x + residual
        return functional.rms_norm(total, self.weight.shape, self.weight, self.eps), total


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
