"""Elements of a float32 product rounded to integers: rounding errors can make a difference of one."""

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
    """Rounds a product to integers."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.round(a @ b)


def rounded(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.round(product(a, b))


HONEST = {name: partial(rounded, product) for name, product in FLOAT32.items()}
CHEATS = {**{name: partial(rounded, product) for name, product in LESS_THAN_FLOAT32.items()}, **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
