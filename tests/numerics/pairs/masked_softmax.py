"""Softmax of float32 scores with a causal mask: half of the output is zero."""

import math
from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements
from tests.numerics.softmax import NORMALIZERS, WRONG_NORMALIZERS, Normalizer

HEADS = 16
LENGTH = 1000

SHAPES = {"small": {"HEADS": 3, "LENGTH": 65}}


class Model(nn.Module):
    """Takes the softmax over those keys that a query may see."""

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


def masked_softmax(
    normalizer: Normalizer, fill: float, model: nn.Module, scores: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    masked = scores.masked_fill(~mask, fill)
    top, total = normalizer(masked)
    return torch.exp(masked - top) / total


def one_key_too_many(model: nn.Module, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model(scores, mask | mask.roll(1, -1).tril(diagonal=1))


HONEST = {
    **{name: partial(masked_softmax, normalizer, -math.inf) for name, normalizer in NORMALIZERS.items()},
    **{f"{name}, masked by -1e9": partial(masked_softmax, normalizer, -1e9)
       for name, normalizer in NORMALIZERS.items()},
}
CHEATS = {
    **{name: partial(masked_softmax, normalizer, -math.inf) for name, normalizer in WRONG_NORMALIZERS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
    "one key too many": one_key_too_many,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    place = torch.arange(LENGTH)
    return [2 * torch.randn(HEADS, LENGTH, LENGTH), place[:, None] >= place]


def get_init_inputs() -> list[object]:
    return []
