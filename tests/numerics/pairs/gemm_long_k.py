"""Matrix product with a long inner dimension in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

M = 96
K = 65536
N = 128

SHAPES = {"small": {"M": 24, "K": 3000, "N": 48}}


class Model(nn.Module):
    """Multiplies two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def multiply(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b)


SLOW = ("steps of 16", "sequential K")
"""Orders that take a minute at this K."""
HONEST = {name: partial(multiply, product) for name, product in FLOAT32.items() if name not in SLOW}
CHEATS = {
    **{name: partial(multiply, product) for name, product in LESS_THAN_FLOAT32.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
