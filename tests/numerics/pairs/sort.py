"""Sorted rows and the indices of their values, for float32 values of which many are equal."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import SORTS, Chosen, Sort, first_of_equals, repeated, shifted, swapped

ROWS = 1024
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 6, "COLUMNS": 400}}


class Model(nn.Module):
    """Sorts each row, the largest value first."""

    def forward(self, x: torch.Tensor) -> Chosen:
        values, indices = torch.sort(x, dim=-1, descending=True)
        return values, indices


def sorted_by(sort: Sort, model: nn.Module, x: torch.Tensor) -> Chosen:
    return sort(x)


HONEST = {name: partial(sorted_by, sort) for name, sort in SORTS.items()}
CHEATS = {
    "not a permutation": partial(sorted_by, partial(repeated, first_of_equals, place=COLUMNS // 2)),
    "two values not in order": partial(
        sorted_by, partial(swapped, first_of_equals, place=COLUMNS // 4, distance=COLUMNS // 4)),
    "indices of neighbours": partial(sorted_by, partial(shifted, first_of_equals)),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.round(64 * torch.randn(ROWS, COLUMNS)) / 64]


def get_init_inputs() -> list[object]:
    return []
