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

# Tokens and sizes of the MLPs of published models. Those of GPT-2 and BLOOM approximate the GELU, and Falcon's has no
# bias.
WORKLOADS = [
    {"name": "BERT base 1x13", "TOKENS": 13, "WIDTH": 768, "HIDDEN": 3072},
    {"name": "BERT base 32x128", "TOKENS": 4096, "WIDTH": 768, "HIDDEN": 3072},
    {"name": "BERT large 8x512", "TOKENS": 4096, "WIDTH": 1024, "HIDDEN": 4096},
    {"name": "GPT-2 XL decode 16", "TOKENS": 16, "WIDTH": 1600, "HIDDEN": 6400},
    {"name": "GPT-2 XL prefill 1024", "TOKENS": 1024, "WIDTH": 1600, "HIDDEN": 6400},
    {"name": "BLOOM 7B decode 8", "TOKENS": 8, "WIDTH": 4096, "HIDDEN": 16384},
    {"name": "BLOOM 7B prefill 2048", "TOKENS": 2048, "WIDTH": 4096, "HIDDEN": 16384},
    {"name": "Falcon 7B prefill 1000", "TOKENS": 1000, "WIDTH": 4544, "HIDDEN": 18176},
    {"name": "ViT-B/16 batch 64", "TOKENS": 12608, "WIDTH": 768, "HIDDEN": 3072},
    {"name": "ViT-L/14 336 px batch 4", "TOKENS": 2308, "WIDTH": 1024, "HIDDEN": 4096},
    {"name": "Whisper large encoder", "TOKENS": 1500, "WIDTH": 1280, "HIDDEN": 5120},
    {"name": "Whisper large decoder, 5 beams", "TOKENS": 5, "WIDTH": 1280, "HIDDEN": 5120},
]


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
