"""Unbiased variance of 1000 + 0.1 randn in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import MOMENTS
from tests.numerics.cheats import PARTIAL_WORK, in_dtype
from tests.numerics.normalization import Moments

ROWS = 16384
COLUMNS = 512

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 60}}


class Model(nn.Module):
    """Takes the variance of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(-1)


def variance(moments: Moments, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return moments(x)[1].squeeze(-1) * (x.shape[-1] / (x.shape[-1] - 1))


HONEST = {name: partial(variance, moments) for name, moments in MOMENTS.items()}
CHEATS = {
    **PARTIAL_WORK,
    "everything in bf16": partial(in_dtype, torch.bfloat16),
}


def get_inputs() -> list[torch.Tensor]:
    return [1000 + 0.1 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
