"""Depthwise 3 x 3 convolution with stride 1 and padding 1: each channel has a filter of its own.

    out[n, c, i, j] = sum over a, b in {-1, 0, 1} of weight[c, 0, a + 1, b + 1] * x[n, c, i + a, j + b]

    x, out: (BATCH, CHANNELS, HEIGHT, WIDTH)  float32
    weight: (CHANNELS, 1, 3, 3)               float32

Places outside of the image count as zero.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("convolution", "memory-bound")

BATCH = 32
CHANNELS = 128
HEIGHT = 112
WIDTH = 112

# "odd": prime sizes, so that rows begin anywhere, and the last group of rows or columns is not full.
SHAPES = {
    "small": {"BATCH": 2, "CHANNELS": 3, "HEIGHT": 38, "WIDTH": 60},
    "odd": {"BATCH": 3, "CHANNELS": 5, "HEIGHT": 37, "WIDTH": 53},
}


class Model(nn.Module):
    """Convolves each channel with its own 3 x 3 filter."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the convolved images, of the shape of x, (batch, channels, height, width)."""
        return self.conv(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
