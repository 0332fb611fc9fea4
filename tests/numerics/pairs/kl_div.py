"""Kullback-Leibler divergence of close distributions in float32: one number, from sums that cancel."""

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
    """Takes the divergence of the first distribution from the second, averaged over rows."""

    def forward(self, probabilities: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.kl_div(probabilities.log(), target, reduction="batchmean")


def by_logarithms(
    add: Elementwise, model: nn.Module, probabilities: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    return add(add(target * (target.log() - probabilities.log()))) / target.shape[0]


def by_quotient(
    add: Elementwise, model: nn.Module, probabilities: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    return add(add(target * torch.log(target / probabilities))) / target.shape[0]


def one_row_too_few(model: nn.Module, probabilities: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return model(probabilities, target) * target.shape[0] / (target.shape[0] - 1)


HONEST = {
    **{f"{name}, logarithms": partial(by_logarithms, add) for name, add in SUMS.items()},
    **{f"{name}, quotient": partial(by_quotient, add) for name, add in SUMS.items()},
}
CHEATS = {
    "sum over half of the values": partial(by_logarithms, partial(sampled_sum, 2)),
    "mean over n - 1": one_row_too_few,
    "everything in bf16": partial(in_dtype, torch.bfloat16),
}


def get_inputs() -> list[torch.Tensor]:
    logits = torch.randn(ROWS, COLUMNS)
    return [torch.softmax(logits + 0.5 * torch.randn(ROWS, COLUMNS), -1), torch.softmax(logits, -1)]


def get_init_inputs() -> list[object]:
    return []
