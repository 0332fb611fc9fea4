"""SwiGLU gate: one half of each row goes through SiLU and multiplies the other half.

    a, b = x[:, :HIDDEN], x[:, HIDDEN:]
    out = silu(a) * b,    silu(a) = a / (1 + exp(-a))

    x:   (TOKENS, 2 * HIDDEN)  float32    gate and value, as one projection of a transformer's MLP gives them
    out: (TOKENS, HIDDEN)      float32
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("elementwise", "fusion", "memory-bound")

# 361 MB in and 180 MB out; HIDDEN is that of a language model with 7 billion parameters.
TOKENS = 4096
HIDDEN = 11008

# "odd": with an odd HIDDEN, the second half of a row never begins at a multiple of 8 bytes together with the first.
SHAPES = {
    "small": {"TOKENS": 32, "HIDDEN": 304},
    "odd": {"TOKENS": 67, "HIDDEN": 311},
}

# Tokens and intermediate sizes of published models: decoding of 1 to 256 sequences, prefill, and one expert's tokens.
WORKLOADS = [
    {"name": "Llama 3 8B decode 1", "TOKENS": 1, "HIDDEN": 14336},
    {"name": "Llama 3 8B decode 64", "TOKENS": 64, "HIDDEN": 14336},
    {"name": "Llama 3 8B prefill 2048", "TOKENS": 2048, "HIDDEN": 14336},
    {"name": "Llama 3 70B decode 16", "TOKENS": 16, "HIDDEN": 28672},
    {"name": "Llama 3 70B prefill 1000", "TOKENS": 1000, "HIDDEN": 28672},
    {"name": "Qwen 2.5 0.5B prefill 2047", "TOKENS": 2047, "HIDDEN": 4864},
    {"name": "Qwen 2.5 7B decode 33", "TOKENS": 33, "HIDDEN": 18944},
    {"name": "Qwen 2.5 7B prefill 2048", "TOKENS": 2048, "HIDDEN": 18944},
    {"name": "DeepSeek V3 decode 128", "TOKENS": 128, "HIDDEN": 18432},
    {"name": "DeepSeek V3 expert, 5 tokens", "TOKENS": 5, "HIDDEN": 2048},
    {"name": "DeepSeek V3 expert, 271 tokens", "TOKENS": 271, "HIDDEN": 2048},
]


class Model(nn.Module):
    """Splits the last dimension in halves and gates one with the other."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return silu(a) * b, of shape (tokens, hidden), for x = [a, b] of shape (tokens, 2 * hidden)."""
        a, b = x.chunk(2, dim=-1)
        return functional.silu(a) * b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, 2 * HIDDEN)]


def get_init_inputs() -> list[object]:
    return []
