"""Batched matrix product in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

BATCH = 16
M = 512
K = 512
N = 512

SHAPES = {"small": {"BATCH": 3, "M": 24, "K": 100, "N": 40}}


class Model(nn.Module):
    """Multiplies the matrices of two batches, each with its counterpart."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


def multiply(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b)


HONEST = {name: partial(multiply, product) for name, product in FLOAT32.items()}
CHEATS = {**{name: partial(multiply, product) for name, product in LESS_THAN_FLOAT32.items()}, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, M, K), torch.randn(BATCH, K, N)]


def get_init_inputs() -> list[object]:
    return []
