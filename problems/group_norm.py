"""Group normalization of images, with a learned weight and bias for each channel.

    out[n, c, i, j] = (x[n, c, i, j] - mean[n, g]) / sqrt(var[n, g] + eps) * weight[c] + bias[c],
    g = c // (CHANNELS / GROUPS)

    x, out:       (BATCH, CHANNELS, HEIGHT, WIDTH)  float32
    mean, var:    over the CHANNELS / GROUPS channels of a group and all of an image's places; var is the biased one
    weight, bias: (CHANNELS,)                       float32

Weight and bias are drawn at random, because with ones and zeros a solution that leaves them out would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("normalization", "reduction", "memory-bound")

BATCH = 64
CHANNELS = 256
GROUPS = 32
HEIGHT = 64
WIDTH = 64

# "odd": the planes have an odd number of places, so that channels begin anywhere, and groups of 7 of them.
SHAPES = {
    "small": {"BATCH": 2, "CHANNELS": 8, "GROUPS": 2, "HEIGHT": 50, "WIDTH": 88},
    "odd": {"BATCH": 3, "CHANNELS": 21, "GROUPS": 3, "HEIGHT": 31, "WIDTH": 43},
}


class Model(nn.Module):
    """Normalizes each group of channels of an image to mean 0 and variance 1, then scales and shifts its channels."""

    def __init__(self, channels: int, groups: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.groups = groups
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(channels))
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized images, of the shape of x, (batch, channels, height, width)."""
        return functional.group_norm(x, self.groups, self.weight, self.bias, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, GROUPS]
