"""Causal convolution of each channel with a long filter in float32, directly: the first outputs have few terms."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import SUMS
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK, without_small_elements
from tests.numerics.softmax import Elementwise

BATCH = 8
CHANNELS = 32
LENGTH = 1024
TAPS = 128

SHAPES = {"small": {"BATCH": 2, "CHANNELS": 12, "LENGTH": 200, "TAPS": 24}}


class Model(nn.Module):
    """Convolves each channel with a filter of its own."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels, _, taps = self.weight.shape
        return functional.conv1d(functional.pad(x, (taps - 1, 0)), self.weight, groups=channels)


def windows(model: Model, x: torch.Tensor) -> torch.Tensor:
    """Returns the products of all windows with the filters: (batch, channels, length, taps)."""
    taps = model.weight.shape[-1]
    return functional.pad(x, (taps - 1, 0)).unfold(-1, taps, 1) * model.weight


def add_up(add: Elementwise, model: Model, x: torch.Tensor) -> torch.Tensor:
    return add(windows(model, x))


def tap_by_tap(model: Model, x: torch.Tensor) -> torch.Tensor:
    taps, length = model.weight.shape[-1], x.shape[-1]
    padded, out = functional.pad(x, (taps - 1, 0)), torch.zeros_like(x)
    for tap in range(taps):
        out.addcmul_(padded[..., tap : tap + length], model.weight[..., tap])
    return out


def without_oldest_taps(model: Model, x: torch.Tensor) -> torch.Tensor:
    return windows(model, x)[..., 8:].sum(-1)


HONEST = {**{name: partial(add_up, add) for name, add in SUMS.items()}, "tap by tap": tap_by_tap}
CHEATS = {
    "oldest taps left out": without_oldest_taps,
    **FLOAT32,
    **PARTIAL_WORK,
    "zero for small elements": without_small_elements,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, TAPS]
