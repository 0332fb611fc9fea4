"""Softmax of long rows.

    out[i, j] = exp(x[i, j] - m[i]) / sum over k of exp(x[i, k] - m[i]),    m[i] = max over k of x[i, k]

    x:   (ROWS, COLUMNS)  float32
    out: (ROWS, COLUMNS)  float32

A row of 131072 values takes 512 KB: more than the registers or the shared memory of one SM of a GPU hold.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

# 268 MB in and 268 MB out.
ROWS = 512
COLUMNS = 131072

# "small": rows that are longer than 352 KB, so that a GPU can't keep them whole either. "odd": primes.
SHAPES = {
    "small": {"ROWS": 2, "COLUMNS": 92160},
    "odd": {"ROWS": 3, "COLUMNS": 20011},
}

# Vocabularies of published models, for sequences that are decoded together, and attention scores: a row for each head
# and query, with a column for each key.
WORKLOADS = [
    {"name": "Llama 3 vocabulary 1", "ROWS": 1, "COLUMNS": 128256},
    {"name": "Llama 3 vocabulary 64", "ROWS": 64, "COLUMNS": 128256},
    {"name": "Qwen 2.5 vocabulary 16", "ROWS": 16, "COLUMNS": 152064},
    {"name": "Qwen 2.5 vocabulary 256", "ROWS": 256, "COLUMNS": 152064},
    {"name": "DeepSeek V3 vocabulary 7", "ROWS": 7, "COLUMNS": 129280},
    {"name": "DeepSeek V3 vocabulary 128", "ROWS": 128, "COLUMNS": 129280},
    {"name": "ViT-B/16 attention 8", "ROWS": 18912, "COLUMNS": 197},
    {"name": "ViT-L/14 attention 4", "ROWS": 36928, "COLUMNS": 577},
    {"name": "Llama 3 8B decode 1, 8191 keys", "ROWS": 32, "COLUMNS": 8191},
    {"name": "Llama 3 8B decode 32, 2048 keys", "ROWS": 1024, "COLUMNS": 2048},
    {"name": "Llama 3 8B prefill 512", "ROWS": 16384, "COLUMNS": 512},
]


class Model(nn.Module):
    """Takes the softmax of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax along the last dimension, of the shape of x, which is (rows, columns)."""
        return torch.softmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
