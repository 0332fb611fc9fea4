"""Convolution of 3 x 3, bias, ReLU and 2 x 2 maximum in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.convolutions import im2col
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

BATCH = 32
CHANNELS = 32
SIZE = 112

SHAPES = {"small": {"BATCH": 2, "CHANNELS": 8, "SIZE": 20}}


class Model(nn.Module):
    """Convolution of an image, with bias, ReLU and maximum over windows of 2 x 2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(torch.relu(self.conv(x)), kernel_size=2)


def fused(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    sums = im2col(product, x, model.conv.weight)
    largest = sums.unflatten(-1, (-1, 2)).amax(-1).unflatten(-2, (-1, 2)).amax(-2)
    return torch.relu(largest + model.conv.bias[:, None, None])


def one_row_of_two(model: Model, x: torch.Tensor) -> torch.Tensor:
    return functional.max_pool2d(torch.relu(model.conv(x))[..., ::2, :], kernel_size=(1, 2))


HONEST = {name: partial(fused, product) for name, product in FLOAT32.items()}
CHEATS = {
    **{name: partial(fused, product) for name, product in LESS_THAN_FLOAT32.items()},
    "one row of each window": one_row_of_two,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
