"""Means of rows in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import PARTIAL_WORK, in_dtype
from tests.numerics.softmax import Elementwise, sampled_sum

ROWS = 65536
COLUMNS = 500

SHAPES = {"small": {"ROWS": 1100, "COLUMNS": 60}}


class Model(nn.Module):
    """Takes the mean of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(-1)


def mean(add: Elementwise, missing: int, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return add(x) / (x.shape[-1] - missing)


def times_the_reciprocal(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1) * (1 / x.shape[-1])


HONEST = {**{name: partial(mean, add, 0) for name, add in SUMS.items()}, "times the reciprocal": times_the_reciprocal}
CHEATS = {
    "mean over n - 1": partial(mean, SUMS["pairwise"], 1),
    "sum over half of the values": partial(mean, partial(sampled_sum, 2), 0),
    "everything in bf16": partial(in_dtype, torch.bfloat16),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
