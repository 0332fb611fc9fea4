"""GELU by its approximation with the hyperbolic tangent in float32."""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import bf16_exp, fast_exp
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Applies the approximation of GELU to each element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x, approximate="tanh")


def argument(x: torch.Tensor) -> torch.Tensor:
    return (2 / math.pi) ** 0.5 * x * (1 + 0.044715 * x * x)


def by_tanh(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(argument(x)))


def by_exp(exp: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x / (1 + exp(-2 * argument(x)))


def by_sigmoid(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(2 * argument(x))


def by_erf(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x)


HONEST = {
    "tanh": by_tanh,
    "exp": partial(by_exp, torch.exp),
    "__expf": partial(by_exp, fast_exp),
    "sigmoid": by_sigmoid,
}
CHEATS = {"erf": by_erf, "exp in bf16": partial(by_exp, bf16_exp), **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
