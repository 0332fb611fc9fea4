"""Hyperbolic tangent in float32 of values up to 20 in size, most of them saturated."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import bf16_exp, fast_exp
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Takes the hyperbolic tangent of each element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


def by_exp(exp: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    power = exp(-2 * x.abs())
    square = x * x
    series = x * (1 + square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * (62 / 2835)))))
    return torch.where(x.abs() < 0.2, series, x.sign() * (1 - power) / (1 + power))


def by_expm1(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    power = torch.expm1(-2 * x.abs())
    return -x.sign() * power / (power + 2)


HONEST = {"exp": partial(by_exp, torch.exp), "__expf": partial(by_exp, fast_exp), "expm1": by_expm1}
CHEATS = {"exp in bf16": partial(by_exp, bf16_exp), **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [4 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
