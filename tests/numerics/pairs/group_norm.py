"""Group normalization of images in float32."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import MOMENTS, WRONG_MOMENTS, Moments, normalize

BATCH = 32
CHANNELS = 64
SIZE = 56
GROUPS = 8

SHAPES = {"small": {"BATCH": 2, "CHANNELS": 8, "SIZE": 10, "GROUPS": 4}}


class Model(nn.Module):
    """Normalizes each group of channels of each image, then scales and shifts channels."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.randn(channels))
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.group_norm(x, self.groups, self.weight, self.bias)


def group_norm(moments: Moments, model: Model, x: torch.Tensor) -> torch.Tensor:
    normalized = normalize(x.reshape(x.shape[0], model.groups, -1), moments).view_as(x)
    return normalized * model.weight[:, None, None] + model.bias[:, None, None]


HONEST = {name: partial(group_norm, moments) for name, moments in MOMENTS.items()}
CHEATS = {
    **{name: partial(group_norm, moments) for name, moments in WRONG_MOMENTS.items()},
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, GROUPS]
