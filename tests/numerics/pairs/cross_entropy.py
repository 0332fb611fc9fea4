"""Mean cross entropy in float32: one number."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import SUMS, pairwise_sum, sum_over_threads
from tests.numerics.cheats import in_dtype
from tests.numerics.softmax import NORMALIZERS, PARTIAL_SUMS, Elementwise, Normalizer, two_passes

FEW = True

ROWS = 2048
CLASSES = 8000

SHAPES = {"small": {"ROWS": 40, "CLASSES": 500}}


class Model(nn.Module):
    """Mean cross entropy with integer targets."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits, target)


def cross_entropy(
    normalizer: Normalizer, add: Elementwise, model: nn.Module, logits: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    top, total = normalizer(logits)
    losses = torch.log(total) - (logits.gather(-1, target.unsqueeze(-1)) - top)
    return add(losses.squeeze(-1)) / target.numel()


def one_row_too_few(model: nn.Module, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return model(logits, target) * target.numel() / (target.numel() - 1)


def without_last_rows(model: nn.Module, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return model(logits[:-16], target[:-16])


HONEST = {
    **{name: partial(cross_entropy, normalizer, pairwise_sum) for name, normalizer in NORMALIZERS.items()},
    **{f"mean {name}": partial(cross_entropy, two_passes, add) for name, add in SUMS.items()},
}
CHEATS = {
    **{name: partial(cross_entropy, normalizer, sum_over_threads) for name, normalizer in PARTIAL_SUMS.items()},
    "everything in bf16": partial(in_dtype, torch.bfloat16),
    "mean over n - 1": one_row_too_few,
    "last rows left out": without_last_rows,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))]


def get_init_inputs() -> list[object]:
    return []
