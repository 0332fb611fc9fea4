"""Product of two lower triangular matrices in float32: elements have from 1 to N terms."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK, without_small_elements
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product

N = 1536

SHAPES = {"small": {"N": 100}}


class Model(nn.Module):
    """Multiplies two lower triangular matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tril(a @ b)


def multiply(product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tril(product(a, b))


def block_by_block(model: nn.Module, a: torch.Tensor, b: torch.Tensor, size: int = 32) -> torch.Tensor:
    out = torch.zeros_like(a)
    for row in range(0, a.shape[0], size):
        for k in range(0, row + size, size):
            out[row : row + size, : k + size] += a[row : row + size, k : k + size] @ b[k : k + size, : k + size]
    return torch.tril(out)


HONEST = {
    **{name: partial(multiply, product) for name, product in FLOAT32.items()},
    "block by block": block_by_block,
}
CHEATS = {
    **{name: partial(multiply, product) for name, product in LESS_THAN_FLOAT32.items()},
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.tril(torch.randn(N, N)), torch.tril(torch.randn(N, N))]


def get_init_inputs() -> list[object]:
    return []
