"""Mean squared error in float32: one small number."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import in_dtype
from tests.numerics.softmax import Elementwise, sampled_sum

FEW = True

ROWS = 2048
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Takes the mean of the squared differences."""

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(x, target)


def loss(add: Elementwise, missing: int, model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return add(add((x - target).square())) / (x.numel() - missing)


HONEST = {name: partial(loss, add, 0) for name, add in SUMS.items()}
CHEATS = {
    "sum over half of the values": partial(loss, partial(sampled_sum, 2), 0),
    "mean without a row": partial(loss, SUMS["pairwise"], COLUMNS),
    "everything in bf16": partial(in_dtype, torch.bfloat16),
}


def get_inputs() -> list[torch.Tensor]:
    return [0.01 * torch.randn(ROWS, COLUMNS), 0.01 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
