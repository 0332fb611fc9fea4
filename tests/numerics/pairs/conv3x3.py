"""Convolution of 3 x 3 in float32, also by Winograd's algorithm, which is less accurate."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.convolutions import im2col, tap_by_tap, winograd
from tests.numerics.products import ACCUMULATIONS, FLOAT32, LESS_THAN_FLOAT32, Product, whole

BATCH = 8
INPUTS = 64
OUTPUTS = 64
SIZE = 56

SHAPES = {"small": {"BATCH": 2, "INPUTS": 24, "OUTPUTS": 8, "SIZE": 11}}


class Model(nn.Module):
    """Convolution without bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, 3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, self.weight, padding=1)


def by_im2col(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    return im2col(product, x, model.weight)


def by_taps(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    return tap_by_tap(product, x, model.weight)


def by_winograd(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    return winograd(product, x, model.weight)


HONEST = {
    **{f"im2col, {name}": partial(by_im2col, product) for name, product in FLOAT32.items()},
    **{f"tap by tap, {name}": partial(by_taps, product) for name, product in ACCUMULATIONS.items()},
    "Winograd": partial(by_winograd, whole),
}
CHEATS = {
    **{name: partial(by_im2col, product) for name, product in LESS_THAN_FLOAT32.items()},
    **{f"Winograd, {name}": partial(by_winograd, product) for name, product in LESS_THAN_FLOAT32.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, INPUTS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [INPUTS, OUTPUTS]
