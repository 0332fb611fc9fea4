"""Softmax of attention scores under a mask, as for a batch of prompts padded on the left.

    out[b, h, q, :] = softmax(s),    s[k] = scores[b, h, q, k] where mask[b, 0, q, k], else the lowest finite number

    scores: (BATCH, HEADS, LENGTH, LENGTH)  float32
    mask:   (BATCH, 1, LENGTH, LENGTH)      bool       True where a query may see a key
    out:    (BATCH, HEADS, LENGTH, LENGTH)  float32

A query sees the keys up to its own place, without the first ones of its prompt, which are padding. Queries in the
padding see no key at all: there the result is 1 / LENGTH for every key, because all their scores are the same.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("normalization", "reduction", "attention", "memory-bound")

BATCH = 8
HEADS = 16
LENGTH = 1024
PADDING = 256  # the most that a prompt has

# "odd": a prime length, so that rows of scores begin at every distance from a multiple of 16 bytes.
SHAPES = {
    "small": {"BATCH": 2, "HEADS": 2, "LENGTH": 136, "PADDING": 40},
    "odd": {"BATCH": 2, "HEADS": 3, "LENGTH": 131, "PADDING": 37},
}


class Model(nn.Module):
    """Takes the softmax over those keys that a query may see."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the weights, of the shape of scores, (batch, heads, queries, keys); mask has one head."""
        return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    scores = torch.randn(BATCH, HEADS, LENGTH, LENGTH)
    padding = torch.randint(PADDING + 1, (BATCH, 1, 1, 1))
    place = torch.arange(LENGTH)
    mask = (place[:, None] >= place) & (place >= padding)
    return [scores, mask]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Only scores that a query may see are needed, for the mean over all paddings; the mask and the result whole."""
    prompts = [LENGTH - padding for padding in range(PADDING + 1)]
    seen = sum(prompt * (prompt + 1) // 2 for prompt in prompts) // len(prompts)
    places = LENGTH * LENGTH
    return {"bytes": BATCH * (HEADS * 4 * (seen + places) + places), "flops": 0}
