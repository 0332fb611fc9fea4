"""Maximum over windows of 3 x 3 in float32, where every accepted implementation is exact."""

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK

BATCH = 16
CHANNELS = 64
SIZE = 112

SHAPES = {"small": {"BATCH": 2, "CHANNELS": 6, "SIZE": 21}}


class Model(nn.Module):
    """Takes the maximum over windows that overlap."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(x, kernel_size=3, stride=2)


def rows_then_columns(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x.unfold(-1, 3, 2).amax(-1).unfold(-2, 3, 2).amax(-1)


def one_row_of_three(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x[..., 1:-1:2, :].unfold(-1, 3, 2).amax(-1)


HONEST = {"rows, then columns": rows_then_columns}
CHEATS = {"one row of each window": one_row_of_three, **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return []
