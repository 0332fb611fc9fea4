"""The first block of an image classifier: 3 x 3 convolution, bias, ReLU, and 2 x 2 maximum.

    y[n, o, i, j] = bias[o] + sum over c and a, b in {-1, 0, 1} of weight[o, c, a + 1, b + 1] * x[n, c, i + a, j + b]
    out[n, o, i, j] = max over a, b in {0, 1} of max(y[n, o, 2 * i + a, 2 * j + b], 0)

    x:      (BATCH, 3, HEIGHT, WIDTH)                        float32
    weight: (CHANNELS, 3, 3, 3), bias: (CHANNELS,)           float32
    out:    (BATCH, CHANNELS, HEIGHT // 2, WIDTH // 2)       float32

Places outside of the image count as zero. A last row or column of y that fills no window of the maximum is dropped.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("convolution", "reduction", "fusion", "compute-bound")

BATCH = 64
CHANNELS = 32
HEIGHT = 224
WIDTH = 224

# "odd": odd sizes, so that rows begin anywhere and the maximum drops a row and a column, and CHANNELS is a prime.
SHAPES = {
    "small": {"BATCH": 2, "CHANNELS": 4, "HEIGHT": 26, "WIDTH": 44},
    "odd": {"BATCH": 3, "CHANNELS": 5, "HEIGHT": 29, "WIDTH": 37},
}


class Model(nn.Module):
    """Convolution with bias, ReLU and maximum over windows of 2 x 2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features, at half the height and half the width of x, which is (batch, 3, height, width)."""
        return functional.max_pool2d(torch.relu(self.conv(x)), kernel_size=2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, 3, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
