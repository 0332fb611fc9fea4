"""Logarithm of the softmax of rows in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import NORMALIZERS, PARTIAL_SUMS, Normalizer

ROWS = 4096
COLUMNS = 4000

SHAPES = {"small": {"ROWS": 8, "COLUMNS": 700}}


class Model(nn.Module):
    """Takes the logarithm of the softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=-1)


def log_softmax(normalizer: Normalizer, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    top, total = normalizer(x)
    return x - top - torch.log(total)


HONEST = {name: partial(log_softmax, normalizer) for name, normalizer in NORMALIZERS.items()}
CHEATS = {
    **{name: partial(log_softmax, normalizer) for name, normalizer in PARTIAL_SUMS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
