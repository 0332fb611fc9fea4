"""GELU by the error function in float32."""

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Applies GELU to each element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x)


def by_erf(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))


def by_erfc(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * torch.erfc(-x * 0.5**0.5)


def by_tanh(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def by_sigmoid(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


HONEST = {"erf": by_erf, "erfc": by_erfc}
CHEATS = {
    "tanh": by_tanh,
    "sigmoid": by_sigmoid,
    **FLOAT32,
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
