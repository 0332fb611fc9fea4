"""Matrix product, residual and ReLU in float16: the epilogue is computed in float32, or rounded step by step."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import ACCUMULATIONS, LESS_THAN_16_BITS, Product

M = 2048
K = 1024
N = 2048

SHAPES = {"small": {"M": 48, "K": 200, "N": 80}}


class Model(nn.Module):
    """Adds a residual to a product, and takes the positive part."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b + residual)


def fused(
    product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor, residual: torch.Tensor
) -> torch.Tensor:
    return torch.relu(product(a, b) + residual.float()).to(a.dtype)


def step_by_step(
    product: Product, model: nn.Module, a: torch.Tensor, b: torch.Tensor, residual: torch.Tensor
) -> torch.Tensor:
    return torch.relu(product(a, b).to(a.dtype) + residual)


def without_residual(model: nn.Module, a: torch.Tensor, b: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    return torch.relu(a @ b)


HONEST = {
    **{f"{name}, epilogue in float32": partial(fused, product) for name, product in ACCUMULATIONS.items()},
    **{f"{name}, epilogue in fp16": partial(step_by_step, product) for name, product in ACCUMULATIONS.items()},
}
CHEATS = {
    **{name: partial(fused, product) for name, product in LESS_THAN_16_BITS.items()},
    "residual left out": without_residual,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(shape, dtype=torch.float16) for shape in ((M, K), (K, N), (M, N))]


def get_init_inputs() -> list[object]:
    return []
