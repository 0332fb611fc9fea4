"""The index of the largest value of each row, for float32 values of which the largest are close."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.choices import ROUNDED, SORTS, Sort

ROWS = 8192
COLUMNS = 4096

FEW = True

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 300}}


class Model(nn.Module):
    """Finds the largest value of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=-1)


def largest_of(sort: Sort, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return sort(x)[1][..., 0]


HONEST = {name: partial(largest_of, sort) for name, sort in SORTS.items()}
CHEATS = {**{name: partial(largest_of, sort) for name, sort in ROUNDED.items()}, **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
