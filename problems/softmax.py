"""Softmax of long rows.

    out[i, j] = exp(x[i, j] - m[i]) / sum over k of exp(x[i, k] - m[i]),    m[i] = max over k of x[i, k]

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS, COLUMNS)  float32

A row of 131072 values takes 512 KB: more than the registers or the shared memory of one SM of a GPU hold.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

# 268 MB in and 268 MB out.
ROWS = 512
COLUMNS = 131072

# "small": rows that are longer than 352 KB, so that a GPU can't keep them whole either. "odd": primes.
SHAPES = {
    "small": {"ROWS": 2, "COLUMNS": 92160},
    "odd": {"ROWS": 3, "COLUMNS": 20011},
}


class Model(nn.Module):
    """Takes the softmax of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax along the last dimension, of the shape of x, which is (rows, columns)."""
        return torch.softmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
