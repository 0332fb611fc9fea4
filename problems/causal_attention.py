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

# Prompts of published models whose heads have 64 elements, as batch x length. Llama, Qwen, Falcon and SmolLM have fewer
# heads of keys and values, which count here as often as queries use them.
WORKLOADS = [
    {"name": "GPT-2 XL 1x1", "BATCH": 1, "HEADS": 25, "LENGTH": 1},
    {"name": "Whisper large decoder 5x4", "BATCH": 5, "HEADS": 20, "LENGTH": 4},
    {"name": "CLIP text 64x77", "BATCH": 64, "HEADS": 8, "LENGTH": 77},
    {"name": "Llama 3.2 1B 1x129", "BATCH": 1, "HEADS": 32, "LENGTH": 129},
    {"name": "Whisper large decoder 8x448", "BATCH": 8, "HEADS": 20, "LENGTH": 448},
    {"name": "GPT-2 16x1023", "BATCH": 16, "HEADS": 12, "LENGTH": 1023},
    {"name": "Qwen 2.5 0.5B 4x1000", "BATCH": 4, "HEADS": 14, "LENGTH": 1000},
    {"name": "OPT 1.3B 2x2048", "BATCH": 2, "HEADS": 32, "LENGTH": 2048},
    {"name": "Falcon 7B 1x2047", "BATCH": 1, "HEADS": 71, "LENGTH": 2047},
    {"name": "Llama 3.2 1B 1x4096", "BATCH": 1, "HEADS": 32, "LENGTH": 4096},
    {"name": "SmolLM2 135M 1x8191", "BATCH": 1, "HEADS": 9, "LENGTH": 8191},
    {"name": "Qwen 2.5 0.5B 1x8192", "BATCH": 1, "HEADS": 14, "LENGTH": 8192},
]


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
