"""RMS normalization of each row in bfloat16, and its backward.

    scale[i] = 1 / sqrt(mean_j(x[i, j]^2) + eps)
    out[i, j] = x[i, j] * scale[i] * weight[j]
    weight_gradient[j] = sum over i of gradient[i, j] * x[i, j] * scale[i]
    x_gradient[i, j] = scale[i] * (gradient[i, j] * weight[j]
                                   - x[i, j] * scale[i]^2 * mean over k of gradient[i, k] * weight[k] * x[i, k])

    x, out, gradient, x_gradient: (ROWS, COLUMNS)  bfloat16
    weight, weight_gradient:      (COLUMNS,)       bfloat16

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

# "small" leaves part of a block without a vector of eight. "odd": primes, so that rows begin at any even address.
SHAPES = {
    "small": {"ROWS": 28, "COLUMNS": 2600},
    "odd": {"ROWS": 31, "COLUMNS": 1031},
}


class Model(nn.Module):
    """Divides each row by its root mean square, then scales its columns."""

    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized rows, of the shape of x, (ROWS, COLUMNS)."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]


def work() -> dict[str, int]:
    """Return the least traffic: x and out once, then x, the gradient of out, and that of x; weight and its gradient."""
    return {"bytes": 2 * (5 * ROWS * COLUMNS + 3 * COLUMNS)}
