"""SwiGLU gate and its backward: one half of each row goes through SiLU and multiplies the other half.

    a, b = x[:, :HIDDEN], x[:, HIDDEN:]
    out = silu(a) * b,    silu(a) = a * s,    s = 1 / (1 + exp(-a))
    x_gradient = [gradient * b * s * (1 + a * (1 - s)), gradient * silu(a)]

    x, x_gradient: (TOKENS, 2 * HIDDEN)  float32    gate and value, as one projection of a transformer's MLP gives them
    out, gradient: (TOKENS, HIDDEN)      float32

A call is a forward and a backward. Inputs are larger than any cache, so the backward reads them from memory again.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("elementwise", "fusion", "memory-bound", "backward")
BACKWARD = True

TOKENS = 4096
HIDDEN = 11008

# "odd": with an odd HIDDEN, the second half of a row never begins at a multiple of 8 bytes together with the first.
SHAPES = {
    "small": {"TOKENS": 32, "HIDDEN": 304},
    "odd": {"TOKENS": 67, "HIDDEN": 311},
}


class Model(nn.Module):
    """Splits the last dimension in halves and gates one with the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return silu(a) * b, of shape (tokens, hidden), for x = [a, b] of shape (tokens, 2 * hidden)."""
        a, b = x.chunk(2, dim=-1)
        return functional.silu(a) * b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, 2 * HIDDEN)]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Return the least traffic: x and out once, then x, the gradient of out, and that of x."""
    return {"bytes": 4 * TOKENS * HIDDEN * (2 + 1 + 2 + 1 + 2)}
