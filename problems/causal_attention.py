"""Causal attention of bfloat16 inputs, with scores, softmax and sums in float32.

    s[q, k] = (sum over d of query[q, d] * key[k, d]) / sqrt(WIDTH) for k <= q, else minus infinity
    out[q, d] = sum over k of softmax(s[q, :])[k] * value[k, d]

for each sequence of the batch and each head, which are left out above:

    query, key, value, out: (BATCH, HEADS, LENGTH, WIDTH)  bfloat16

The reference computes all scores, masks them, takes the softmax, and rounds once, at the end. Scores rounded to
bfloat16 would have no digits behind the point where inputs are large, and softmax would make something else of them.
"""

import math

import torch
from torch import nn

LEVEL = 3
TAGS = ("attention", "matmul", "normalization", "fusion", "compute-bound")

BATCH = 4
HEADS = 16
LENGTH = 2048
WIDTH = 64

# WIDTH is the same everywhere: kernels are written for one. "odd": a prime length, which leaves a remainder for every
# tile of queries and of keys.
SHAPES = {
    "small": {"BATCH": 1, "HEADS": 2, "LENGTH": 144},
    "odd": {"BATCH": 2, "HEADS": 1, "LENGTH": 197},
}


class Model(nn.Module):
    """Attention in which a query sees the keys up to its own place."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return the attended values, of the shape of all three, (batch, heads, length, width)."""
        length, width = query.shape[-2:]
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(diagonal=1)
        scores = query.float() @ key.float().transpose(-2, -1) / math.sqrt(width)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
        return (weights @ value.float()).to(query.dtype)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Three inputs read once, the result written once, and both products for the keys that queries see."""
    seen = LENGTH * (LENGTH + 1) // 2
    return {"bytes": 2 * 4 * BATCH * HEADS * LENGTH * WIDTH, "flops": 2 * 2 * BATCH * HEADS * seen * WIDTH}
