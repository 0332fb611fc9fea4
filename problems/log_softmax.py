"""Logarithm of the softmax of each row.

    out[i, j] = x[i, j] - m_i - log(sum over k of exp(x[i, k] - m_i)),    m_i = max over k of x[i, k]

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS, COLUMNS)  float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

ROWS = 8192
COLUMNS = 16384

# "odd": primes, so that rows begin at every distance from a multiple of 16 bytes and fill no round of a block.
SHAPES = {
    "small": {"ROWS": 12, "COLUMNS": 6144},
    "odd": {"ROWS": 13, "COLUMNS": 5003},
}


class Model(nn.Module):
    """Takes the logarithm of the softmax of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithms, of the shape of x, (ROWS, COLUMNS)."""
        return torch.log_softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
