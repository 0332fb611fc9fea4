"""The index of the largest element of each row of a float32 product."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

ROWS = 4096
WIDTH = 512
CLASSES = 2048

SHAPES = {"small": {"ROWS": 4000, "WIDTH": 60, "CLASSES": 300}}


class Model(nn.Module):
    """Multiplies by the weights, and finds the largest element of each row."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight).argmax(-1)


def largest_of(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    return product(x, model.weight).argmax(-1)


HONEST = {name: partial(largest_of, product) for name, product in FLOAT32.items()}
CHEATS = {**{name: partial(largest_of, product) for name, product in LESS_THAN_FLOAT32.items()}, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, CLASSES]
