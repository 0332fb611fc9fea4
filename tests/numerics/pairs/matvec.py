"""Product of a matrix and a vector in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 8192
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 200}}


class Model(nn.Module):
    """Multiplies a matrix by a vector."""

    def forward(self, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return a @ x


def multiply(add: Elementwise, model: nn.Module, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return add(a * x)


def without_tail(model: nn.Module, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return a[:, :-16] @ x[:-16]


HONEST = {name: partial(multiply, add) for name, add in SUMS.items()}
CHEATS = {**FLOAT32, **PARTIAL_WORK, "tail of K left out": without_tail}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
