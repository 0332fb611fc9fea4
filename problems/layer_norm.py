"""Layer normalization of each row, with a learned weight and bias.

    out[i, j] = (x[i, j] - mean_i) / sqrt(var_i + eps) * weight[j] + bias[j]

    x:            (ROWS, COLUMNS)  float32
    mean, var:    of row i; var is the biased one (divided by COLUMNS)
    weight, bias: (COLUMNS,)       float32
    out:          (ROWS, COLUMNS)  float32

Weight and bias are drawn at random, because with ones and zeros a solution that leaves them out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

ROWS = 16384
COLUMNS = 8192

# "odd": primes, so that rows begin at every distance from a multiple of 16 bytes and fill no round of a block.
SHAPES = {
    "small": {"ROWS": 20, "COLUMNS": 3072},
    "odd": {"ROWS": 23, "COLUMNS": 2503},
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
