"""Attention of one new token for each sequence to keys and values in pages, as when a language model decodes.

    s[k] = (sum over d of query[b, h, d] * key[k, d]) / sqrt(WIDTH) for k < lengths[b]
    out[b, h, d] = sum over k of softmax(s)[k] * value[k, d]

    query:                  (BATCH, QUERY_HEADS, WIDTH)        bfloat16
    key_pages, value_pages: (pages, PAGE, KEY_HEADS, WIDTH)    bfloat16
    page_table:             (BATCH, most pages of a sequence)  int32
    lengths:                (BATCH,)                           int32  keys of each sequence, at least 1
    out:                    (BATCH, QUERY_HEADS, WIDTH)        bfloat16

Key k of sequence b is `key_pages[page_table[b, k // PAGE], k % PAGE]`, with one row for each head of keys, and its
value is in the same place. Neighbouring query heads share a head of keys: query head h uses head
h // (QUERY_HEADS // KEY_HEADS). The last page of a sequence may have further rows, which don't count. Entries of the
page table behind it are 0.

Scores, softmax and sums are in float32. The reference gathers all pages, hides what is beyond a sequence's length, and
rounds once, at the end.
"""

import math

import torch
from torch import nn

LEVEL = 3
TAGS = ("attention", "gather", "ragged", "fusion", "memory-bound")

BATCH = 32
QUERY_HEADS = 32
KEY_HEADS = 8
WIDTH = 128
PAGE = 16
SHORTEST = 1  # of all sequences; the others are spread evenly up to LONGEST
LONGEST = 4096

# Widths are 64 or 128: kernels are written for these. "odd": groups of eleven heads, and pages of seven rows.
SHAPES = {
    "small": {"BATCH": 3, "QUERY_HEADS": 8, "KEY_HEADS": 2, "LONGEST": 200},
    "odd": {"BATCH": 5, "QUERY_HEADS": 22, "KEY_HEADS": 2, "WIDTH": 64, "PAGE": 7, "SHORTEST": 2, "LONGEST": 131},
}

# Kernels are written for the widths 64 and 128, so WIDTH stays as it is.
RANGES = {
    "BATCH": (1, 128), "QUERY_HEADS": (8, 64, 8), "KEY_HEADS": (1, 8), "PAGE": (1, 64), "LONGEST": (1, 8192),
}

# Heads of published models, with the lengths of their sequences. A model on 8 GPUs has an eighth of its heads on each.
WORKLOADS = [
    {"name": "Llama 3 8B 1x8192", "BATCH": 1, "LONGEST": 8192},
    {"name": "Llama 3 8B 16x1", "BATCH": 16, "LONGEST": 1},
    {"name": "Llama 3 8B 64x1-2048", "BATCH": 64, "LONGEST": 2048},
    {"name": "Llama 3 8B 128x1-1000", "BATCH": 128, "LONGEST": 1000},
    {"name": "Llama 3 70B 8x4000-8192", "BATCH": 8, "QUERY_HEADS": 64, "SHORTEST": 4000, "LONGEST": 8192},
    {"name": "Llama 3 70B on 8 GPUs 1x8191", "BATCH": 1, "QUERY_HEADS": 8, "KEY_HEADS": 1, "LONGEST": 8191},
    {"name": "Llama 3 70B on 8 GPUs 128x1-8192", "BATCH": 128, "QUERY_HEADS": 8, "KEY_HEADS": 1, "LONGEST": 8192},
    {"name": "Qwen 2.5 0.5B 64x1-513", "BATCH": 64, "QUERY_HEADS": 14, "KEY_HEADS": 2, "WIDTH": 64, "LONGEST": 513},
    {"name": "Qwen 2.5 7B 1x333", "BATCH": 1, "QUERY_HEADS": 28, "KEY_HEADS": 4, "LONGEST": 333},
    {"name": "Qwen 2.5 7B 32x1-4096", "BATCH": 32, "QUERY_HEADS": 28, "KEY_HEADS": 4, "LONGEST": 4096},
    {"name": "Qwen 2.5 72B 4x100-7000", "BATCH": 4, "QUERY_HEADS": 64, "SHORTEST": 100, "LONGEST": 7000},
    {"name": "Qwen 2.5 72B 16x2047", "BATCH": 16, "QUERY_HEADS": 64, "SHORTEST": 2047, "LONGEST": 2047},
]


class Model(nn.Module):
    """Attends to the keys and values that the page table of each sequence names."""

    def __init__(self) -> None:
        super().__init__()

    def forward(
        self, query: torch.Tensor, key_pages: torch.Tensor, value_pages: torch.Tensor, page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        """Return the attended values, of the shape of query, (batch, query heads, width)."""
        keys = key_pages[page_table].flatten(1, 2).float()  # (batch, places, key heads, width)
        values = value_pages[page_table].flatten(1, 2).float()
        groups = query.float().unflatten(1, (keys.shape[2], -1))  # (batch, key heads, heads of a group, width)
        scores = torch.einsum("bhgd,bkhd->bhgk", groups, keys) / math.sqrt(query.shape[-1])
        beyond = torch.arange(keys.shape[1], device=query.device) >= lengths[:, None]
        weights = torch.softmax(scores.masked_fill(beyond[:, None, None], -math.inf), dim=-1)
        return torch.einsum("bhgk,bkhd->bhgd", weights, values).flatten(1, 2).to(query.dtype)


def spread_lengths() -> list[int]:
    """Return the length of each sequence, the longest first: those of every call, which shuffles them."""
    return [LONGEST - (LONGEST - SHORTEST) * i // max(1, BATCH - 1) for i in range(BATCH)]


def get_inputs() -> list[torch.Tensor]:
    lengths = torch.tensor(spread_lengths(), dtype=torch.int32)[torch.randperm(BATCH)]
    needed = (lengths + PAGE - 1) // PAGE
    pages = int(needed.sum())
    page_table = torch.zeros(BATCH, int(needed.max()), dtype=torch.int32)
    page_table[torch.arange(page_table.shape[1]) < needed[:, None]] = torch.randperm(pages, dtype=torch.int32)
    query = torch.randn(BATCH, QUERY_HEADS, WIDTH, dtype=torch.bfloat16)
    key_pages, value_pages = (torch.randn(pages, PAGE, KEY_HEADS, WIDTH, dtype=torch.bfloat16) for _ in range(2))
    return [query, key_pages, value_pages, page_table, lengths]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Keys, values and the entries of the page table that count read once, and both products for them."""
    keys, pages = sum(spread_lengths()), sum(-(-length // PAGE) for length in spread_lengths())
    queries = BATCH * QUERY_HEADS * WIDTH
    return {
        "bytes": 2 * 2 * (queries + keys * KEY_HEADS * WIDTH) + 4 * (pages + BATCH),
        "flops": 2 * 2 * keys * QUERY_HEADS * WIDTH,
    }
