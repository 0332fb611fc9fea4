"""Division of columns by their Euclidean norm in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import SUMS, newton_rsqrt
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise, sampled_sum

ROWS = 2048
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 200, "COLUMNS": 24}}


class Model(nn.Module):
    """Divides each column by its norm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.linalg.vector_norm(x, dim=0)


def by_division(add: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(add(x.T.contiguous().square()))


def by_newton(add: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * newton_rsqrt(add(x.T.contiguous().square()))


HONEST = {
    **{f"{name}, division": partial(by_division, add) for name, add in SUMS.items()},
    **{f"{name}, Newton": partial(by_newton, add) for name, add in SUMS.items()},
}
CHEATS = {
    "sum over half of the values": partial(by_division, partial(sampled_sum, 2)),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
