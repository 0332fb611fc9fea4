"""Unbiased variance of short rows in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import one_pass, two_pass
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import MOMENTS, WRONG_MOMENTS, Moments

ROWS = 262144
COLUMNS = 48

SHAPES = {"small": {"ROWS": 1100}}


class Model(nn.Module):
    """Takes the variance of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(-1)


def variance(moments: Moments, correction: int, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return moments(x)[1].squeeze(-1) * (x.shape[-1] / (x.shape[-1] - correction))


HONEST = {name: partial(variance, moments, 1) for name, moments in MOMENTS.items()}
CHEATS = {
    "biased variance": partial(variance, two_pass, 0),
    "biased variance in one pass": partial(variance, one_pass, 0),
    **{name: partial(variance, moments, 1) for name, moments in WRONG_MOMENTS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
