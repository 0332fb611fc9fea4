"""Linear layer and GELU in bfloat16: the epilogue is computed in float32, or rounded step by step."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import ACCUMULATIONS, LESS_THAN_16_BITS, Product

BATCH = 2048
INPUTS = 1024
OUTPUTS = 2048

SHAPES = {"small": {"BATCH": 24, "INPUTS": 200, "OUTPUTS": 80}}


class Model(nn.Module):
    """Linear layer followed by GELU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(self.linear(x))


def fused(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    sums = product(x, model.linear.weight.T) + model.linear.bias.float()
    return functional.gelu(sums).to(x.dtype)


def step_by_step(product: Product, model: Model, x: torch.Tensor) -> torch.Tensor:
    sums = product(x, model.linear.weight.T).to(x.dtype) + model.linear.bias
    half = 0.5 * (1 + torch.erf(sums.float() * 0.5**0.5))
    return sums * half.to(x.dtype)


HONEST = {
    **{f"{name}, epilogue in float32": partial(fused, product) for name, product in ACCUMULATIONS.items()},
    **{f"{name}, epilogue in bf16": partial(step_by_step, product) for name, product in ACCUMULATIONS.items()},
}
CHEATS = {
    **{name: partial(fused, product) for name, product in LESS_THAN_16_BITS.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, INPUTS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [INPUTS, OUTPUTS]
