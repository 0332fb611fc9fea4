"""Cross entropy of logits and integer targets, averaged over the rows, and its backward.

    p[i, j] = exp(logits[i, j]) / sum over k of exp(logits[i, k])
    loss = mean over i of -log(p[i, target[i]])
    logits_gradient[i, j] = gradient * (p[i, j] - (1 if j == target[i] else 0)) / ROWS

    logits, logits_gradient: (ROWS, CLASSES)  float32    logits are unnormalized
    target:                  (ROWS,)          int64      in [0, CLASSES)
    loss, gradient:          ()               float32

A call is a forward and a backward. The logits are larger than any cache, so the backward reads them from memory again.
The full size is that of a language model's last layer: 4096 tokens, a vocabulary of 32000.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("reduction", "normalization", "memory-bound", "backward")
BACKWARD = True

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

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss, without dimensions, for logits (rows, classes) and target (rows,)."""
        return functional.cross_entropy(logits, target)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Return the least traffic: the logits in each pass, their gradient, and the targets."""
    return {"bytes": 3 * 4 * ROWS * CLASSES + 8 * ROWS}
