"""Layer normalization in float32 of values so small that eps counts."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import MOMENTS, ROOTS, Moments, Root, normalize

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Subtracts each row's mean and divides by its standard deviation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, x.shape[-1:])


def layer_norm(moments: Moments, root: Root, eps: float, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return normalize(x, moments, root, eps)


HONEST = {f"{name}, {kind}": partial(layer_norm, moments, root, 1e-5)
          for name, moments in MOMENTS.items() for kind, root in ROOTS.items()}
CHEATS = {
    "eps left out": partial(layer_norm, MOMENTS["two passes"], torch.rsqrt, 0.0),
    "eps ten times as large": partial(layer_norm, MOMENTS["two passes"], torch.rsqrt, 1e-4),
    "eps of 1e-6": partial(layer_norm, MOMENTS["two passes"], torch.rsqrt, 1e-6),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [3e-3 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
