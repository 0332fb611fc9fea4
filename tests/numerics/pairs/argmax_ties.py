"""The index of the largest value of each row, for bfloat16 values of which several are the largest."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import SORTS, Sort, first_of_equals, of_rounded, shifted, swapped

ROWS = 4096
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 300}}


class Model(nn.Module):
    """Finds the largest value of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=-1)


def largest_of(sort: Sort, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return sort(x)[1][..., 0]


HONEST = {name: partial(largest_of, sort) for name, sort in SORTS.items()}
CHEATS = {
    "largest fp8 value": partial(largest_of, partial(of_rounded, torch.float8_e4m3fn)),
    "a smaller value": partial(largest_of, partial(swapped, first_of_equals, place=0, distance=COLUMNS // 8)),
    "index of a neighbour": partial(largest_of, partial(shifted, first_of_equals)),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
