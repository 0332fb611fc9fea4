"""Perceptron with two hidden layers and ReLU.

    h1 = max(x @ W1.T + b1, 0)
    h2 = max(h1 @ W2.T + b2, 0)
    out = h2 @ W3.T + b3

    x:      (BATCH, WIDTH)                     float32
    W1, b1: (HIDDEN, WIDTH), (HIDDEN,)         float32
    W2, b2: (HIDDEN, HIDDEN), (HIDDEN,)        float32
    W3, b3: (CLASSES, HIDDEN), (CLASSES,)      float32
    out:    (BATCH, CLASSES)                   float32
"""

import torch
from torch import nn

LEVEL = 3
TAGS = ("matmul", "elementwise", "fusion", "compute-bound")

BATCH = 4096
WIDTH = 2048
HIDDEN = 4096
CLASSES = 1024

# "odd": primes just above a power of two or below, so that every usual tile size leaves a remainder.
SHAPES = {
    "small": {"BATCH": 32, "WIDTH": 48, "HIDDEN": 80, "CLASSES": 24},
    "odd": {"BATCH": 37, "WIDTH": 67, "HIDDEN": 131, "CLASSES": 29},
}


class Model(nn.Module):
    """Three linear layers with ReLU between them."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, of shape (batch, classes), for x (batch, width)."""
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.third(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN, CLASSES]
