"""Division of rows by their root mean square in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import ROOTS, Root
from tests.numerics.softmax import Elementwise, sampled_sum

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Divides each row by its root mean square, then scales its columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, 1e-6)


def rms_norm(add: Elementwise, root: Root, model: Model, x: torch.Tensor) -> torch.Tensor:
    return x * root(add(x.square()).unsqueeze(-1) / x.shape[-1] + 1e-6) * model.weight


HONEST = {f"{name}, {kind}": partial(rms_norm, add, root) for name, add in SUMS.items() for kind, root in ROOTS.items()}
CHEATS = {
    "sum over half of the values": partial(rms_norm, partial(sampled_sum, 2), torch.rsqrt),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
