"""Mean of the float32 rows of each group: rows added in any order, and groups without rows are zero."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import newton_reciprocal
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

GROUPS = 4000
WIDTH = 512
ROWS = 20000

SHAPES = {"small": {"GROUPS": 30, "WIDTH": 60, "ROWS": 100}}


class Model(nn.Module):
    """Takes the mean of the rows of each group."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, groups: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        sums = x.new_zeros(self.groups, x.shape[1]).index_add_(0, groups, x)
        return sums / torch.bincount(groups, minlength=self.groups).clamp(min=1)[:, None]


def mean(
    reciprocal: Elementwise, missing: int, model: Model, groups: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    order = torch.randperm(x.shape[0], device=x.device)
    sums = x.new_zeros(model.groups, x.shape[1]).index_add_(0, groups[order], x[order])
    counts = torch.bincount(groups, minlength=model.groups) - missing
    return sums * reciprocal(counts.clamp(min=1).to(x.dtype))[:, None]


def running(model: Model, groups: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    share = 1 / torch.bincount(groups, minlength=model.groups).clamp(min=1).to(x.dtype)
    return x.new_zeros(model.groups, x.shape[1]).index_add_(0, groups, x * share[groups][:, None])


HONEST = {
    "any order": partial(mean, torch.reciprocal, 0),
    "any order, Newton": partial(mean, newton_reciprocal, 0),
    "divided first": running,
}
CHEATS = {"mean over n - 1": partial(mean, torch.reciprocal, 1), **FLOAT32, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(GROUPS, (ROWS,)), torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [GROUPS]
