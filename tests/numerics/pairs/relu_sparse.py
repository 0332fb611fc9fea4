"""Linear layer with a negative bias and ReLU in float32: most of the output is zero."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

M = 2048
K = 1024
N = 2048

SHAPES = {"small": {"M": 80, "K": 200, "N": 128}}


class Model(nn.Module):
    """Takes the positive part of a product, less two standard deviations."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b - 2 * a.shape[-1] ** 0.5)


def sparse(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(product(a, b) - 2 * a.shape[-1] ** 0.5)


def nothing(model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_zeros(a.shape[0], b.shape[1])


HONEST = {name: partial(sparse, product) for name, product in FLOAT32.items()}
CHEATS = {
    **{name: partial(sparse, product) for name, product in LESS_THAN_FLOAT32.items()},
    **PARTIAL_WORK,
    "zero everywhere": nothing,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
