"""Matrix product of float16 inputs, rounded once."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import ACCUMULATIONS, LESS_THAN_16_BITS, Product, sequential_k, whole

M = 2048
K = 1024
N = 2048

SHAPES = {"small": {"M": 48, "K": 200, "N": 80}}


class Model(nn.Module):
    """Multiplies two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def multiply(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b).to(a.dtype)


HONEST = {name: partial(multiply, product)
          for name, product in {**ACCUMULATIONS, "one product": whole, "sequential K": sequential_k}.items()}
CHEATS = {
    **{name: partial(multiply, product) for name, product in LESS_THAN_16_BITS.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K, dtype=torch.float16), torch.randn(K, N, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
