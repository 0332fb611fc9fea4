"""The indices that sort each row, for bfloat16 values of which many are equal."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import SORTS, Sort, first_of_equals, of_rounded, repeated, shifted, swapped

ROWS = 1024
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 6, "COLUMNS": 400}}


class Model(nn.Module):
    """Finds the order of each row, the largest value first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argsort(x, dim=-1, descending=True)


def indices_of(sort: Sort, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return sort(x)[1]


HONEST = {name: partial(indices_of, sort) for name, sort in SORTS.items()}
CHEATS = {
    "not a permutation": partial(indices_of, partial(repeated, first_of_equals, place=COLUMNS // 2)),
    "two values not in order": partial(
        indices_of, partial(swapped, first_of_equals, place=COLUMNS // 4, distance=COLUMNS // 4)),
    "indices of neighbours": partial(indices_of, partial(shifted, first_of_equals)),
    "order of fp8 values": partial(indices_of, partial(of_rounded, torch.float8_e4m3fn)),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
