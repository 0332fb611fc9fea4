"""Sigmoid in float32 of values up to 40 in size: near 1, or tiny."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import bf16_exp, fast_exp
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Takes the sigmoid of each element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


def sigmoid(exp: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return 1 / (1 + exp(-x))


def by_sign(exp: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    power = exp(-x.abs())
    return torch.where(x >= 0, 1 / (1 + power), power / (1 + power))


HONEST = {
    f"{name}{kind}": partial(way, exp)
    for name, exp in (("exp", torch.exp), ("__expf", fast_exp))
    for kind, way in (("", sigmoid), (" of the negative size", by_sign))
}
CHEATS = {
    "exp in bf16": partial(sigmoid, bf16_exp),
    **FLOAT32,
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [8 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
