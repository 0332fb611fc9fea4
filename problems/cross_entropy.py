"""Cross entropy of logits and integer targets, averaged over the rows.

    loss = mean_i(log(sum_j(exp(logits[i, j]))) - logits[i, target[i]])

    logits: (ROWS, CLASSES)  float32    unnormalized
    target: (ROWS,)          int64      in [0, CLASSES)
    loss:   ()               float32

The full size is that of a language model's last layer: 4096 tokens, a vocabulary of 32000.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("reduction", "normalization", "memory-bound")

ROWS = 4096
CLASSES = 32000

# Rows long enough that a block needs more than one pass. "odd": a prime number of classes, so that rows begin at every
# distance from a multiple of 16 bytes.
SHAPES = {
    "small": {"ROWS": 6, "CLASSES": 12000},
    "odd": {"ROWS": 7, "CLASSES": 10007},
}


class Model(nn.Module):
    """Mean cross entropy with integer targets."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss, without dimensions, for logits (rows, classes) and target (rows,)."""
        return functional.cross_entropy(logits, target)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))]


def get_init_inputs() -> list[object]:
    return []
