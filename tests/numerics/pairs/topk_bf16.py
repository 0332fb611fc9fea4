"""The largest values of each row and their indices, for bfloat16 values, of which many are equal."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import SORTS, Chosen, Sort, first_of_equals, repeated, shifted, swapped

ROWS = 2048
COLUMNS = 8192
LARGEST = 64

SHAPES = {"small": {"ROWS": 24, "COLUMNS": 2000}}


class Model(nn.Module):
    """Finds the largest values."""

    def __init__(self, largest: int) -> None:
        super().__init__()
        self.largest = largest

    def forward(self, x: torch.Tensor) -> Chosen:
        values, indices = torch.topk(x, self.largest)
        return values, indices


def first_of(sort: Sort, model: Model, x: torch.Tensor) -> Chosen:
    values, indices = sort(x)
    return values[..., : model.largest].contiguous(), indices[..., : model.largest].contiguous()


HONEST = {name: partial(first_of, sort) for name, sort in SORTS.items()}
CHEATS = {
    "an index repeated": partial(first_of, partial(repeated, first_of_equals, place=LARGEST - 1)),
    "last value is a smaller one": partial(
        first_of, partial(swapped, first_of_equals, place=LARGEST - 1, distance=LARGEST)),
    "indices of neighbours": partial(first_of, partial(shifted, first_of_equals)),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [LARGEST]
