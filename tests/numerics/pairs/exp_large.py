"""Exponentials of values up to 20 in float32: outputs from 1 to half a billion."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import LOG2_E, bf16_exp, fast_exp
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Takes the exponential of each element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x)


def elementwise(exp: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return exp(x)


def reduced(x: torch.Tensor) -> torch.Tensor:
    power = torch.round(x * LOG2_E)
    rest = x - power * 0.693145751953125 - power * 1.42860682030941723212e-6
    return torch.ldexp(torch.exp(rest), power.int())


HONEST = {"__expf": partial(elementwise, fast_exp), "reduced range": partial(elementwise, reduced)}
CHEATS = {
    "exp in bf16": partial(elementwise, bf16_exp),
    **FLOAT32,
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [20 * torch.rand(ROWS, COLUMNS).sqrt()]


def get_init_inputs() -> list[object]:
    return []
