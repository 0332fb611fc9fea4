"""GELU, the exact one, of the rows plus a learned bias, and its backward.

    h[i, j] = x[i, j] + bias[j]
    out[i, j] = h[i, j] * Phi(h[i, j])
    x_gradient[i, j] = gradient[i, j] * (Phi(h[i, j]) + h[i, j] * phi(h[i, j]))
    bias_gradient[j] = sum over i of x_gradient[i, j]

    Phi, phi: distribution function and density of the normal distribution
    x, out, gradient, x_gradient: (ROWS, COLUMNS)  float32
    bias, bias_gradient:          (COLUMNS,)       float32

A call is a forward and a backward. x is larger than any cache, so the backward reads it from memory again.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("elementwise", "reduction", "memory-bound", "backward")
BACKWARD = True

ROWS = 32768
COLUMNS = 4096

# "small" leaves part of a block without a vector of four. "odd": primes, so that rows begin at any multiple of 4 bytes.
SHAPES = {
    "small": {"ROWS": 24, "COLUMNS": 1300},
    "odd": {"ROWS": 31, "COLUMNS": 1021},
}


class Model(nn.Module):
    """Adds a bias to each row and applies the exact GELU."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return gelu(x + bias), of the shape of x, (ROWS, COLUMNS)."""
        return functional.gelu(x + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]


def work() -> dict[str, int]:
    """Return the least traffic: x and out once, then x, the gradient of out, and that of x; the bias, its gradient."""
    return {"bytes": 4 * (5 * ROWS * COLUMNS + 3 * COLUMNS)}
