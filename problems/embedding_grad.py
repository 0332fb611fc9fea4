"""Gradient of an embedding table: the rows of a gradient, added up by token into a table of zeros.

    out[v, :] = sum over all t with tokens[t] == v of grad[t, :]

    tokens: (TOKENS,)             int64      in [0, VOCABULARY)
    grad:   (TOKENS, WIDTH)       float32
    out:    (VOCABULARY, WIDTH)   float32

On a GPU the reference adds with atomics, so the order of additions, and with it the rounding of tokens that occur more
than twice, differs from run to run.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("gather", "reduction", "memory-bound")

VOCABULARY = 32000
WIDTH = 2048
TOKENS = 32768

# Most tokens occur several times, and some never. "odd": a prime width, so that rows begin at every distance from a
# multiple of 16 bytes.
SHAPES = {
    "small": {"VOCABULARY": 40, "WIDTH": 640, "TOKENS": 72},
    "odd": {"VOCABULARY": 37, "WIDTH": 599, "TOKENS": 83},
}


class Model(nn.Module):
    """Adds rows into a table of zeros, each at the place that its token names."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        """Return the table, of shape (vocabulary, width), for tokens (tokens,) and grad (tokens, width)."""
        return grad.new_zeros(self.vocabulary, grad.shape[1]).index_add_(0, tokens, grad)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(VOCABULARY, (TOKENS,)), torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [VOCABULARY]
