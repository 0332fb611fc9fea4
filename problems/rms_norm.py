"""RMS normalization of each row in bfloat16.

    out[i, j] = x[i, j] / sqrt(mean_j(x[i, j]^2) + eps) * weight[j]

    x:      (ROWS, COLUMNS)  bfloat16
    weight: (COLUMNS,)       bfloat16
    out:    (ROWS, COLUMNS)  bfloat16

The mean of the squares is taken in float32. The weight is drawn at random, because with ones a solution that leaves it
out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

ROWS = 32768
COLUMNS = 4096

# "odd": primes, so that rows begin at every even distance from a multiple of 16 bytes. "small" leaves part of the
# block without a vector of eight.
SHAPES = {
    "small": {"ROWS": 28, "COLUMNS": 2600},
    "odd": {"ROWS": 31, "COLUMNS": 2053},
}

# Tokens and hidden sizes of published models: decoding of 1 to 256 sequences, and prefill.
WORKLOADS = [
    {"name": "Llama 3 8B decode 1", "ROWS": 1, "COLUMNS": 4096},
    {"name": "Llama 3 8B decode 64", "ROWS": 64, "COLUMNS": 4096},
    {"name": "Llama 3 8B prefill 8192", "ROWS": 8192, "COLUMNS": 4096},
    {"name": "Llama 3 70B decode 16", "ROWS": 16, "COLUMNS": 8192},
    {"name": "Llama 3 70B prefill 4096", "ROWS": 4096, "COLUMNS": 8192},
    {"name": "Qwen 2.5 0.5B prefill 2047", "ROWS": 2047, "COLUMNS": 896},
    {"name": "Qwen 2.5 7B decode 33", "ROWS": 33, "COLUMNS": 3584},
    {"name": "Qwen 2.5 7B prefill 6000", "ROWS": 6000, "COLUMNS": 3584},
    {"name": "DeepSeek V3 decode 128", "ROWS": 128, "COLUMNS": 7168},
    {"name": "DeepSeek V3 prefill 4096", "ROWS": 4096, "COLUMNS": 7168},
    {"name": "DeepSeek V3 query rank, decode 256", "ROWS": 256, "COLUMNS": 1536},
    {"name": "DeepSeek V3 key rank, prefill 4096", "ROWS": 4096, "COLUMNS": 512},
]


class Model(nn.Module):
    """Divides each row by its root mean square, then scales its columns."""

    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized rows, of the shape of x, (ROWS, COLUMNS)."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
