"""Router of a mixture of experts in float32: the two largest weights of a softmax of a product, and their indices."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import fast_exp
from tests.numerics.cheats import PARTIAL_WORK
from tests.numerics.choices import Chosen
from tests.numerics.products import FLOAT32, LESS_THAN_FLOAT32, Product
from tests.numerics.softmax import Elementwise, online, two_passes

TOKENS = 8192
WIDTH = 1024
EXPERTS = 64

SHAPES = {"small": {"TOKENS": 600, "WIDTH": 60, "EXPERTS": 16}}


class Model(nn.Module):
    """Chooses two experts for each token."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, experts) / width**0.5)

    def forward(self, x: torch.Tensor) -> Chosen:
        values, indices = torch.softmax(x @ self.weight, -1).topk(2)
        return values, indices


def route(product: Product, exp: Elementwise, model: Model, x: torch.Tensor) -> Chosen:
    scores = product(x, model.weight)
    top, total = two_passes(scores, exp)
    values, indices = (exp(scores - top) / total).topk(2)
    return values, indices


def choose_first(model: Model, x: torch.Tensor) -> Chosen:
    scores = x @ model.weight
    top, total = online(scores, size=16)
    chosen, indices = scores.topk(2)
    return torch.exp(chosen - top) / total, indices


def normalized_over_two(model: Model, x: torch.Tensor) -> Chosen:
    values, indices = model(x)
    return values / values.sum(-1, keepdim=True), indices


def one_expert_twice(model: Model, x: torch.Tensor) -> Chosen:
    values, indices = model(x)
    return values, indices[:, :1].expand(-1, 2).contiguous()


HONEST = {
    **{name: partial(route, product, torch.exp) for name, product in FLOAT32.items()},
    "__expf": partial(route, FLOAT32["split K"], fast_exp),
    "chosen by score, online": choose_first,
}
CHEATS = {
    **{name: partial(route, product, torch.exp) for name, product in LESS_THAN_FLOAT32.items()},
    "normalized over the two": normalized_over_two,
    "one expert twice": one_expert_twice,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, EXPERTS]
