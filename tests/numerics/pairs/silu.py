"""SiLU in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import bf16_exp, fast_exp, newton_of_finite, newton_reciprocal, round_to_tf32
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Multiplies each element by its sigmoid."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.silu(x)


def silu(exp: Elementwise, reciprocal: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * reciprocal(1 + exp(-x))


HONEST = {
    f"{name}, {kind}": partial(silu, exp, reciprocal)
    for name, exp in (("exp", torch.exp), ("__expf", fast_exp))
    for kind, reciprocal in (("division", torch.reciprocal), ("Newton", newton_of_finite))
}
CHEATS = {
    "exp that overflows, Newton": partial(silu, torch.exp, newton_reciprocal),
    "exp in bf16": partial(silu, bf16_exp, torch.reciprocal),
    "reciprocal in TF32": partial(silu, torch.exp, lambda x: round_to_tf32(1 / x)),
    **FLOAT32,
    **PARTIAL_WORK,
}
REVEALED_BY = {"exp that overflows, Newton": "ONE_LARGE"}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
