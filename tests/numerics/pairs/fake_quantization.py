"""Rounding of each float32 row to 8-bit integers and back: a step at every half."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import newton_reciprocal
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Rounds to multiples of a 127th of the largest value of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True) / 127
        return torch.round(x / scale).clamp(-127, 127) * scale


def quantize(
    rounding: Elementwise, reciprocal: Elementwise, levels: int, model: nn.Module, x: torch.Tensor
) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True) / levels
    return rounding(x * reciprocal(scale)).clamp(-levels, levels) * scale


def by_127(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    largest = x.abs().amax(-1, keepdim=True)
    return torch.round(x * (127 / largest)) * (largest * (1 / 127))


HONEST = {
    "times the reciprocal": partial(quantize, torch.round, torch.reciprocal, 127),
    "times Newton's reciprocal": partial(quantize, torch.round, newton_reciprocal, 127),
    "times 127 over the largest": by_127,
    "half up": partial(quantize, lambda x: torch.floor(x + 0.5), torch.reciprocal, 127),
}
CHEATS = {
    "rounded down": partial(quantize, torch.floor, torch.reciprocal, 127),
    "fewer levels": partial(quantize, torch.round, torch.reciprocal, 63),
    "not rounded": partial(quantize, torch.clone, torch.reciprocal, 127),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
