"""Two linear layers with ReLU in between, in bfloat16: the hidden layer is rounded, or kept in float32."""

from functools import partial

import torch
from torch import nn

from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.products import ACCUMULATIONS, LESS_THAN_16_BITS, Product

BATCH = 1024
WIDTH = 1024
HIDDEN = 4096

SHAPES = {"small": {"BATCH": 24, "WIDTH": 80, "HIDDEN": 200}}


class Model(nn.Module):
    """Linear layer, ReLU, linear layer."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.down = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def mlp(product: Product, dtype: torch.dtype, model: Model, x: torch.Tensor) -> torch.Tensor:
    hidden = torch.relu(product(x, model.up.weight.T) + model.up.bias.float()).to(dtype)
    return (product(hidden, model.down.weight.T) + model.down.bias.float()).to(x.dtype)


HONEST = {
    **{f"{name}, hidden in bf16": partial(mlp, product, torch.bfloat16) for name, product in ACCUMULATIONS.items()},
    **{f"{name}, hidden in float32": partial(mlp, product, torch.float32) for name, product in ACCUMULATIONS.items()},
}
CHEATS = {
    **{name: partial(mlp, product, torch.bfloat16) for name, product in LESS_THAN_16_BITS.items()},
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN]
