"""Causal attention of float16 inputs, whose reference rounds scores, weights and outputs."""

import math
from functools import partial

import torch
from torch import nn

from tests.numerics import attention
from tests.numerics.cheats import stale_quarter

BATCH = 4
HEADS = 16
LENGTH = 2048
WIDTH = 64

SHAPES = {"small": {"BATCH": 2, "HEADS": 2, "LENGTH": 144}}


class Model(nn.Module):
    """Attention in which a query sees the keys up to its own place."""

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        length, width = query.shape[-2:]
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(diagonal=1)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
        return weights @ value


def attend(
    way: attention.Attention, model: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    return way(query, key, value)


HONEST = {name: partial(attend, way) for name, way in attention.HONEST.items()}
CHEATS = {
    **{name: partial(attend, way) for name, way in attention.CHEATS.items()},
    "stale quarter": stale_quarter,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float16) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []
