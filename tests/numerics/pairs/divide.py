"""Quotients in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import newton_reciprocal, round_to_tf32
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Divides each element by one plus the square of another."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x / (1 + y * y)


def times(reciprocal: Elementwise, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * reciprocal(1 + y * y)


HONEST = {"reciprocal": partial(times, torch.reciprocal), "Newton": partial(times, newton_reciprocal)}
CHEATS = {
    "reciprocal in TF32": partial(times, lambda x: round_to_tf32(1 / x)),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
