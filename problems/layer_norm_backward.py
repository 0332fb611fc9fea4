"""Layer normalization of each row, with a learned weight and bias, and its backward.

    n[i, j] = (x[i, j] - mean_i) / sqrt(var_i + eps)
    out[i, j] = n[i, j] * weight[j] + bias[j]
    bias_gradient[j] = sum over i of gradient[i, j]
    weight_gradient[j] = sum over i of gradient[i, j] * n[i, j]
    x_gradient[i, j] = (p[i, j] - mean_k(p[i, k]) - n[i, j] * mean_k(p[i, k] * n[i, k])) / sqrt(var_i + eps),
                       p[i, j] = gradient[i, j] * weight[j]

    x, out, gradient, x_gradient:   (ROWS, COLUMNS)  float32
    mean, var:                      of row i; var is the biased one (divided by COLUMNS)
    weight, bias, their gradients:  (COLUMNS,)       float32

A call is a forward and a backward. Inputs are larger than any cache, so the backward reads them from memory again.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound", "backward")
BACKWARD = True

ROWS = 32768
COLUMNS = 4096

# "small" leaves part of a block without a vector of four. "odd": primes, so that rows begin at any multiple of 4 bytes.
SHAPES = {
    "small": {"ROWS": 20, "COLUMNS": 2600},
    "odd": {"ROWS": 23, "COLUMNS": 1031},
}


class Model(nn.Module):
    """Normalizes each row to mean 0 and variance 1, then scales and shifts its columns."""

    def __init__(self, columns: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized rows, of the shape of x, (ROWS, COLUMNS)."""
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]


def work() -> dict[str, int]:
    """Return the least traffic: x and out once, then x, the gradient of out, and that of x; weight, bias, gradients."""
    return {"bytes": 4 * (5 * ROWS * COLUMNS + 5 * COLUMNS)}
