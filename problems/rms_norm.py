"""RMS normalization of each row in bfloat16.

    out[i, j] = x[i, j] / sqrt(mean_j(x[i, j]^2) + eps) * weight[j]

    x:      (ROWS, COLUMNS)  bfloat16
    weight: (COLUMNS,)       bfloat16
    out:    (ROWS, COLUMNS)  bfloat16

The mean of the squares is taken in float32. The weight is drawn at random, because with ones a solution that leaves it
out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

ROWS = 32768
COLUMNS = 4096

# "odd": primes, so that rows begin at every even distance from a multiple of 16 bytes. "small" leaves part of the
# block without a vector of eight.
SHAPES = {
    "small": {"ROWS": 28, "COLUMNS": 2600},
    "odd": {"ROWS": 31, "COLUMNS": 2053},
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
