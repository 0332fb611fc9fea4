"""Linear layer with bias and exact GELU in bfloat16, as the first half of a transformer's MLP.

    y = x @ W.T + b
    out = y * (1 + erf(y / sqrt(2))) / 2

    x:    (TOKENS, WIDTH)             bfloat16
    W, b: (HIDDEN, WIDTH), (HIDDEN,)  bfloat16
    out:  (TOKENS, HIDDEN)            bfloat16
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("matmul", "elementwise", "fusion", "compute-bound")

TOKENS = 8192
WIDTH = 4096
HIDDEN = 16384

# "odd": primes just above a power of two, so that every usual tile size leaves a remainder.
SHAPES = {
    "small": {"TOKENS": 48, "WIDTH": 96, "HIDDEN": 80},
    "odd": {"TOKENS": 67, "WIDTH": 131, "HIDDEN": 137},
}


class Model(nn.Module):
    """Linear layer followed by the exact GELU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activated features, of shape (tokens, hidden), for x (tokens, width)."""
        return functional.gelu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN]
