"""Matrix product of positive values in float32: errors of the factors cancel."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

M = 2048
K = 1024
N = 2048

REVEALED_BY = {"TF32": "SIGNS", "one fp16 product of three": "SIGNS"}  # their errors average out unless signs are mixed

SHAPES = {"small": {"M": 48, "K": 200, "N": 80}}


class Model(nn.Module):
    """Multiplies two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def multiply(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b)


HONEST = {name: partial(multiply, product) for name, product in FLOAT32.items()}
CHEATS = {
    **{name: partial(multiply, product) for name, product in LESS_THAN_FLOAT32.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs() -> list[object]:
    return []
