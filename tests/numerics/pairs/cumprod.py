"""Prefix products of rows of values near 1 in float32."""

from functools import partial
from typing import Any

import torch
from torch import nn

from tests.numerics import scans
from tests.numerics.arithmetic import round_to
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK

ROWS = 4096
COLUMNS = 2000

SHAPES = {"small": {"ROWS": 5, "COLUMNS": 700}}


class Model(nn.Module):
    """Multiplies all values of a row up to each place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumprod(x, dim=-1)


def by_chunks(options: dict[str, Any], model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return scans.by_chunks(x, torch.mul, 1.0, **options)


def in_order(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return scans.in_order(x, torch.mul)


def doubling(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return scans.doubling(x, torch.mul)


def logarithms(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.exp(scans.by_chunks(torch.log(x), torch.add, 0.0))


def carry_in_bf16(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return round_to(torch.bfloat16, torch.mul(before, value))


def of_one_chunk(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return value


HONEST = {
    "in order": in_order,
    "doubling": doubling,
    "chunks of 64": partial(by_chunks, {}),
    "chunks of 256": partial(by_chunks, {"size": 256}),
    "chunks in order": partial(by_chunks, {"scan": scans.in_order}),
    "sums of logarithms": logarithms,
}
CHEATS = {
    "carry in bf16": partial(by_chunks, {"carry": carry_in_bf16}),
    "carry of one chunk only": partial(by_chunks, {"carry": of_one_chunk}),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.exp(0.05 * torch.randn(ROWS, COLUMNS))]


def get_init_inputs() -> list[object]:
    return []
