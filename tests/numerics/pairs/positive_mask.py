"""Whether elements of a float32 product are positive: booleans that rounding can flip."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

M = 2048
K = 1024
N = 2048

SHAPES = {"small": {"M": 200, "K": 200, "N": 160}}


class Model(nn.Module):
    """Compares a product with zero."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b > 0


def positive(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b) > 0


HONEST = {name: partial(positive, product) for name, product in FLOAT32.items()}
CHEATS = {**{name: partial(positive, product) for name, product in LESS_THAN_FLOAT32.items()}, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
