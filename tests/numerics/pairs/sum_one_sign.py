"""Sums of a million positive terms in float32."""

from functools import partial

import numpy as np
import torch
from torch import nn

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import in_dtype, stale_quarter
from tests.numerics.softmax import Elementwise, sampled_sum

FEW = True

ROWS = 32
TERMS = 1000000

SHAPES = {"small": {"ROWS": 4, "TERMS": 20000}}


class Model(nn.Module):
    """Adds the values of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


def add_up(add: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return add(x)


def one_after_the_other(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.add.accumulate(x.cpu().numpy(), axis=-1)[..., -1].copy()).to(x.device)


HONEST = {
    **{name: partial(add_up, add) for name, add in SUMS.items()},
    "one after the other": partial(add_up, one_after_the_other),
}
CHEATS = {
    "sum over a thousandth": partial(add_up, partial(sampled_sum, 1000)),
    "last chunk left out": partial(add_up, lambda x: x[..., :-1024].sum(-1)),
    "sums in bf16": partial(in_dtype, torch.bfloat16),
    "stale quarter": stale_quarter,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(ROWS, TERMS)]


def get_init_inputs() -> list[object]:
    return []
