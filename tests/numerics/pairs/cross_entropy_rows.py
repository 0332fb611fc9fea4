"""Cross entropy of each row in float32, with a few large losses and many small ones."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import NORMALIZERS, WRONG_NORMALIZERS, Normalizer

ROWS = 16384
CLASSES = 1000

SHAPES = {"small": {"ROWS": 1100, "CLASSES": 60}}


class Model(nn.Module):
    """Cross entropy of each row with integer targets."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits, target, reduction="none")


def cross_entropy(
    normalizer: Normalizer, model: nn.Module, logits: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    top, total = normalizer(logits)
    return (torch.log(total) - (logits.gather(-1, target.unsqueeze(-1)) - top)).squeeze(-1)


HONEST = {name: partial(cross_entropy, normalizer) for name, normalizer in NORMALIZERS.items()}
CHEATS = {
    **{name: partial(cross_entropy, normalizer) for name, normalizer in WRONG_NORMALIZERS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [4 * torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))]


def get_init_inputs() -> list[object]:
    return []
