"""The bucket of each float32 value after a scale and a shift: integers that rounding can change by one."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

ROWS = 2048
COLUMNS = 2048
BUCKETS = 100

SHAPES = {"small": {"ROWS": 100, "COLUMNS": 120}}


class Model(nn.Module):
    """Finds the bucket of a scaled value between -3 and 3."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ends = torch.linspace(-3, 3, BUCKETS + 1, dtype=x.dtype, device=x.device)
        return torch.bucketize(0.7 * x + 0.1, ends)


def by_division(rounding: Elementwise, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    place = rounding((0.7 * x + 0.1 + 3) * (BUCKETS / 6))
    return place.clamp(0, BUCKETS + 1).long()


def by_counting(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    ends, scaled = torch.linspace(-3, 3, BUCKETS + 1, device=x.device), torch.add(0.1, x, alpha=0.7)
    counts = torch.zeros_like(x, dtype=torch.int64)
    for end in ends:
        counts += scaled > end
    return counts


HONEST = {"comparisons counted": by_counting}
CHEATS = {"rounded down": partial(by_division, torch.floor), **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
