"""GELU, the exact one with the error function.

    out = x * Phi(x) = 0.5 * x * (1 + erf(x / sqrt(2)))    element by element; Phi is the normal distribution function

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS, COLUMNS)  float32
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("elementwise", "memory-bound")

# 268 MB in and 268 MB out.
ROWS = 16384
COLUMNS = 4096

# "odd": two primes, so that neither rows nor the whole tensor fill vectors or blocks.
SHAPES = {
    "small": {"ROWS": 64, "COLUMNS": 160},
    "odd": {"ROWS": 131, "COLUMNS": 197},
}


class Model(nn.Module):
    """Applies the exact GELU."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return gelu(x), of the shape of x."""
        return functional.gelu(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
