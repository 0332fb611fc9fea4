"""Layer normalization of rows in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import MOMENTS, ROOTS, WRONG_MOMENTS, Moments, Root, normalize

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Subtracts each row's mean, divides by its standard deviation, then scales and shifts columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias)


def layer_norm(moments: Moments, root: Root, model: Model, x: torch.Tensor) -> torch.Tensor:
    return normalize(x, moments, root) * model.weight + model.bias


def one_multiplication(model: Model, x: torch.Tensor) -> torch.Tensor:
    mean, variance = MOMENTS["Welford"](x)
    factor = torch.rsqrt(variance + 1e-5) * model.weight
    return x * factor + (model.bias - mean * factor)


HONEST = {
    **{f"{name}, {kind}": partial(layer_norm, moments, root)
       for name, moments in MOMENTS.items() for kind, root in ROOTS.items()},
    "one multiplication and addition": one_multiplication,
}
CHEATS = {
    **{name: partial(layer_norm, moments, torch.rsqrt) for name, moments in WRONG_MOMENTS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
