"""Linear layer and clamp in float32: most elements are at an end of the range."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

M = 2048
K = 1024
N = 2048

SHAPES = {"small": {"M": 48, "K": 200, "N": 80}}


class Model(nn.Module):
    """Clamps the elements of a product."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.hardtanh(a @ b, -1.0, 2.0)


def clamped(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b).clamp(-1.0, 2.0)


def not_clamped(model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a @ b).clamp(max=2.0)


HONEST = {name: partial(clamped, product) for name, product in FLOAT32.items()}
CHEATS = {
    **{name: partial(clamped, product) for name, product in LESS_THAN_FLOAT32.items()},
    "clamped at one end": not_clamped,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
