"""Histograms of the rows of a float32 product: counts that rounding can change by one."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import stale_quarter, without_last_row
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

ROWS = 1024
WIDTH = 512
COLUMNS = 4096
BINS = 32

SHAPES = {"small": {"ROWS": 80, "WIDTH": 60, "COLUMNS": 400}}


def histogram(values: torch.Tensor) -> torch.Tensor:
    """Counts values between -4 and 4 in each row. The ends' bins have everything beyond."""
    places = torch.floor((values + 4) * (BINS / 8)).clamp(0, BINS - 1).long()
    return torch.zeros(values.shape[0], BINS, dtype=torch.int64, device=values.device).scatter_add_(
        1, places, torch.ones_like(places))


class Model(nn.Module):
    """Multiplies by the weights, and counts the elements of each row in bins."""

    def __init__(self, width: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, columns) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return histogram(x @ self.weight)


def count(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    return histogram(product(x, model.weight))


def of_half(model: Model, x: torch.Tensor) -> torch.Tensor:
    return 2 * histogram(x @ model.weight[:, ::2])


HONEST = {name: partial(count, product) for name, product in FLOAT32.items()}
CHEATS = {
    **{name: partial(count, product) for name, product in LESS_THAN_FLOAT32.items()},
    "half of the columns counted twice": of_half,
    "stale quarter": stale_quarter,
    "last row left out": without_last_row,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, COLUMNS]
