"""Softmax of each row, and its backward.

    out[i, j] = exp(x[i, j]) / sum over k of exp(x[i, k])
    x_gradient[i, j] = out[i, j] * (gradient[i, j] - sum over k of gradient[i, k] * out[i, k])

    x, out, gradient, x_gradient: (ROWS, COLUMNS)  float32

A call is a forward and a backward. Outputs are larger than any cache, so the backward reads them from memory again.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound", "backward")
BACKWARD = True

ROWS = 32768
COLUMNS = 4096

# "small" leaves part of a block without a vector of four. "odd": primes, so that rows begin at any multiple of 4 bytes.
SHAPES = {
    "small": {"ROWS": 24, "COLUMNS": 1300},
    "odd": {"ROWS": 31, "COLUMNS": 1021},
}


class Model(nn.Module):
    """Takes the softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax along the last dimension, of the shape of x, (ROWS, COLUMNS)."""
        return torch.softmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Return the least traffic: x and out once, then out, the gradient of out, and that of x."""
    return {"bytes": 5 * 4 * ROWS * COLUMNS}
