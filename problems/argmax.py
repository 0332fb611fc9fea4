"""Index of the largest value of each row; of equal ones, the first.

    out[i] = the smallest j with x[i, j] = max over k of x[i, k]

    x:   (TOKENS, VOCABULARY)  bfloat16
    out: (TOKENS,)             int64

This is greedy decoding: the next token is the one with the largest logit. A bfloat16 has 8 significant bits, so that
many rows hold their largest value several times, and which one is taken matters. torch.argmax takes the first, on the
CPU and on a GPU, though its documentation leaves that open. A NaN counts as larger than everything else.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("reduction", "memory-bound")

# 268 MB in, next to nothing out.
TOKENS = 4096
VOCABULARY = 32768

# "odd": primes.
SHAPES = {
    "small": {"TOKENS": 9, "VOCABULARY": 8192},
    "odd": {"TOKENS": 13, "VOCABULARY": 5003},
}


class Model(nn.Module):
    """Finds the largest value of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the indices of the largest values, of shape (tokens,), for x of shape (tokens, vocabulary)."""
        return torch.argmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, VOCABULARY, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
