"""The largest value of each row and its index, for float32 values of which several are the largest."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import SORTS, Chosen, Sort, first_of_equals, shifted, swapped

ROWS = 4096
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 300}}


class Model(nn.Module):
    """Finds the largest value of each row."""

    def forward(self, x: torch.Tensor) -> Chosen:
        values, indices = x.max(-1)
        return values, indices


def largest_of(sort: Sort, model: nn.Module, x: torch.Tensor) -> Chosen:
    values, indices = sort(x)
    return values[..., 0], indices[..., 0]


HONEST = {name: partial(largest_of, sort) for name, sort in SORTS.items()}
CHEATS = {
    "a smaller value": partial(largest_of, partial(swapped, first_of_equals, place=0, distance=COLUMNS // 8)),
    "index of a neighbour": partial(largest_of, partial(shifted, first_of_equals)),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.round(4 * torch.randn(ROWS, COLUMNS)) / 4]


def get_init_inputs() -> list[object]:
    return []
