"""Layer normalization of each row, with a learned weight and bias.

    out[i, j] = (x[i, j] - mean_i) / sqrt(var_i + eps) * weight[j] + bias[j]

    x:            (ROWS, COLUMNS)  float32
    mean, var:    of row i; var is the biased one (divided by COLUMNS)
    weight, bias: (COLUMNS,)       float32
    out:          (ROWS, COLUMNS)  float32

Weight and bias are drawn at random, because with ones and zeros a solution that leaves them out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

ROWS = 16384
COLUMNS = 8192

# "odd": primes, so that rows begin at every distance from a multiple of 16 bytes and fill no round of a block.
SHAPES = {
    "small": {"ROWS": 20, "COLUMNS": 3072},
    "odd": {"ROWS": 23, "COLUMNS": 2503},
}

# Tokens and widths of published models: batches of texts, images and sound, decoding, and prefill.
WORKLOADS = [
    {"name": "BERT base 1x13", "ROWS": 13, "COLUMNS": 768},
    {"name": "BERT large 32x512", "ROWS": 16384, "COLUMNS": 1024},
    {"name": "GPT-2 XL decode 1", "ROWS": 1, "COLUMNS": 1600},
    {"name": "GPT-2 XL prefill 8x1024", "ROWS": 8192, "COLUMNS": 1600},
    {"name": "OPT 175B decode 16", "ROWS": 16, "COLUMNS": 12288},
    {"name": "OPT 175B prefill 2048", "ROWS": 2048, "COLUMNS": 12288},
    {"name": "Falcon 7B decode 64", "ROWS": 64, "COLUMNS": 4544},
    {"name": "Falcon 7B prefill 2047", "ROWS": 2047, "COLUMNS": 4544},
    {"name": "ViT-B/16 batch 64", "ROWS": 12608, "COLUMNS": 768},
    {"name": "ViT-L/14 336 px batch 16", "ROWS": 9232, "COLUMNS": 1024},
    {"name": "Whisper large encoder", "ROWS": 1500, "COLUMNS": 1280},
    {"name": "Whisper large decoder, 5 beams", "ROWS": 5, "COLUMNS": 1280},
]


class Model(nn.Module):
    """Normalizes each row to mean 0 and variance 1, then scales and shifts its columns."""

    def __init__(self, columns: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized rows, of the shape of x, (ROWS, COLUMNS)."""
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
