"""Softmax of rows in float32, of which most values are small."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements
from tests.numerics.softmax import NORMALIZERS, WRONG_NORMALIZERS, Normalizer

ROWS = 4096
COLUMNS = 4000

SHAPES = {"small": {"ROWS": 8, "COLUMNS": 700}}


class Model(nn.Module):
    """Takes the softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def softmax(normalizer: Normalizer, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    top, total = normalizer(x)
    return torch.exp(x - top) / total


HONEST = {name: partial(softmax, normalizer) for name, normalizer in NORMALIZERS.items()}
CHEATS = {
    **{name: partial(softmax, normalizer) for name, normalizer in WRONG_NORMALIZERS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
