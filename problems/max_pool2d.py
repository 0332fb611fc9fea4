"""Maximum over 3 x 3 windows with stride 2 and padding 1, as after the first convolution of a residual network.

    out[n, c, i, j] = max over a, b in {-1, 0, 1} of x[n, c, 2 * i + a, 2 * j + b]

    x:   (BATCH, CHANNELS, HEIGHT, WIDTH)                                  float32
    out: (BATCH, CHANNELS, (HEIGHT - 1) // 2 + 1, (WIDTH - 1) // 2 + 1)    float32

Places outside of the image count as minus infinity.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 1
TAGS = ("reduction", "memory-bound")

BATCH = 128
CHANNELS = 64
HEIGHT = 112
WIDTH = 112

# "odd": prime sizes, so that rows begin anywhere, and the last window of a row or column hangs over the edge. "small"
# has even sizes, where the last window doesn't.
SHAPES = {
    "small": {"BATCH": 2, "CHANNELS": 3, "HEIGHT": 38, "WIDTH": 60},
    "odd": {"BATCH": 3, "CHANNELS": 5, "HEIGHT": 37, "WIDTH": 53},
}


class Model(nn.Module):
    """Maximum over 3 x 3 windows, stride 2, padding 1."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maxima, at about half the height and half the width of x."""
        return functional.max_pool2d(x, kernel_size=3, stride=2, padding=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return []
