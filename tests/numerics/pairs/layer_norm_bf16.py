"""Layer normalization of rows in bfloat16, with statistics in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import round_to_fp8
from tests.numerics.cheats import BITS_16, PARTIAL_WORK, with_rounded_outputs
from tests.numerics.normalization import MOMENTS, ROOTS, WRONG_MOMENTS, Moments, Root, normalize

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Subtracts each row's mean, divides by its standard deviation, then scales and shifts columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))
        self.bias = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias)


def rounded_once(moments: Moments, root: Root, model: Model, x: torch.Tensor) -> torch.Tensor:
    return (normalize(x.float(), moments, root) * model.weight.float() + model.bias.float()).to(x.dtype)


def step_by_step(model: Model, x: torch.Tensor) -> torch.Tensor:
    return normalize(x.float(), MOMENTS["Welford"]).to(x.dtype) * model.weight + model.bias


HONEST = {
    **{f"{name}, {kind}": partial(rounded_once, moments, root)
       for name, moments in MOMENTS.items() for kind, root in ROOTS.items()},
    "weight and bias in bf16": step_by_step,
}
CHEATS = {
    **{name: partial(rounded_once, moments, torch.rsqrt) for name, moments in WRONG_MOMENTS.items()
       if name != "moments without the tail"},
    "outputs in fp8": partial(with_rounded_outputs, round_to_fp8),
    **BITS_16,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
