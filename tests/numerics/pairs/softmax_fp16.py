"""Softmax of rows in float16, computed in float32: many elements are subnormal."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import round_to_fp8
from tests.numerics.cheats import BITS_16, PARTIAL_WORK, with_rounded_outputs
from tests.numerics.softmax import NORMALIZERS, PARTIAL_SUMS, Normalizer

ROWS = 4096
COLUMNS = 4000

SHAPES = {"small": {"ROWS": 8, "COLUMNS": 700}}


class Model(nn.Module):
    """Takes the softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def softmax(normalizer: Normalizer, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    top, total = normalizer(x.float())
    return (torch.exp(x.float() - top) / total).to(x.dtype)


HONEST = {name: partial(softmax, normalizer) for name, normalizer in NORMALIZERS.items()}
CHEATS = {
    "sum over half of the values": partial(softmax, PARTIAL_SUMS["sum over half of the values"]),
    "outputs in fp8": partial(with_rounded_outputs, partial(round_to_fp8, scaled=True)),
    **BITS_16,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(ROWS, COLUMNS, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
