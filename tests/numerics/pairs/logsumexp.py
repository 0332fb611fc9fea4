"""Logarithm of the sum of exponentials of rows in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK, in_dtype
from tests.numerics.softmax import NORMALIZERS, PARTIAL_SUMS, Normalizer

ROWS = 16384
COLUMNS = 2000

SHAPES = {"small": {"ROWS": 1200, "COLUMNS": 90}}


class Model(nn.Module):
    """Adds the exponentials of each row, and takes the logarithm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, dim=-1)


def logsumexp(normalizer: Normalizer, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    top, total = normalizer(x)
    return (top + torch.log(total)).squeeze(-1)


HONEST = {name: partial(logsumexp, normalizer) for name, normalizer in NORMALIZERS.items()}
CHEATS = {
    **{name: partial(logsumexp, normalizer) for name, normalizer in PARTIAL_SUMS.items()},
    "everything in bf16": partial(in_dtype, torch.bfloat16),
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
