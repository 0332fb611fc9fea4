"""Layer normalization of 1000 + 0.1 randn in float32: squares cancel.

Even two passes are off by 3e-4, because the mean is rounded to float32. Inputs are rounded as coarsely.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import MOMENTS
from tests.numerics.cheats import PARTIAL_WORK, in_dtype
from tests.numerics.normalization import ROOTS, Moments, Root, normalize

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Subtracts each row's mean and divides by its standard deviation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, x.shape[-1:])


def layer_norm(moments: Moments, root: Root, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return normalize(x, moments, root)


HONEST = {f"{name}, {kind}": partial(layer_norm, moments, root)
          for name, moments in MOMENTS.items() for kind, root in ROOTS.items()}
CHEATS = {
    **PARTIAL_WORK,
    "everything in bf16": partial(in_dtype, torch.bfloat16),
}


def get_inputs() -> list[torch.Tensor]:
    return [1000 + 0.1 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
