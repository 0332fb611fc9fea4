"""The largest value of each row in float32."""

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK

ROWS = 4096
COLUMNS = 4096

SHAPES = {"small": {"ROWS": 100, "COLUMNS": 300}}


class Model(nn.Module):
    """Finds the largest value of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(-1)


HONEST = {"in parts": lambda model, x: torch.stack([part.amax(-1) for part in x.split(64, -1)]).amax(0)}
CHEATS = {
    "begins at 0": lambda model, x: x.amax(-1).clamp(min=0),
    "begins at the smallest positive number": lambda model, x: x.amax(-1).clamp(min=torch.finfo(x.dtype).tiny),
    "negative values left out": lambda model, x: x.abs().amax(-1) * (x > 0).any(-1),
    **PARTIAL_WORK,
}
REVEALED_BY = {"begins at 0": "ONE_SIGN", "begins at the smallest positive number": "ONE_SIGN"}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
