"""Embedding: a row of a learned table for each token.

    out[t, :] = weight[tokens[t], :]

    tokens: (TOKENS,)             int64      in [0, VOCABULARY)
    weight: (VOCABULARY, WIDTH)   float32
    out:    (TOKENS, WIDTH)       float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("gather", "memory-bound")

VOCABULARY = 32000
WIDTH = 2048
TOKENS = 32768

# "odd": a prime width, so that rows begin at every distance from a multiple of 16 bytes.
SHAPES = {
    "small": {"VOCABULARY": 96, "WIDTH": 640, "TOKENS": 72},
    "odd": {"VOCABULARY": 61, "WIDTH": 599, "TOKENS": 83},
}


class Model(nn.Module):
    """Looks up the embedding of each token."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embeddings, of shape (tokens, width), of tokens of shape (tokens,)."""
        return self.embedding(tokens)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(VOCABULARY, (TOKENS,))]


def get_init_inputs() -> list[object]:
    return [VOCABULARY, WIDTH]


def work() -> dict[str, int]:
    """What the lookup needs: the tokens and each row that occurs among them read once, the result written once.

    Of VOCABULARY rows a given one is missed by all tokens with the probability (1 - 1 / VOCABULARY) ** TOKENS; the
    number of those that occur varies little around its mean.
    """
    occurring = int(VOCABULARY * (1 - (1 - 1 / VOCABULARY) ** TOKENS))
    return {"bytes": 8 * TOKENS + 4 * WIDTH * (occurring + TOKENS), "flops": 0}
