"""Linear recurrence over time, h[t] = a[t] h[t - 1] + b[t], in float32: chunks in parallel against a loop."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import round_to, round_to_tf32
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

BATCH = 8
LENGTH = 512
CHANNELS = 1024

SHAPES = {"small": {"BATCH": 2, "LENGTH": 100, "CHANNELS": 40}}


class Model(nn.Module):
    """Loops over time."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        states = [b[:, 0]]
        for step in range(1, a.shape[1]):
            states.append(a[:, step] * states[-1] + b[:, step])
        return torch.stack(states, 1)


def doubling(model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return scan(a, b)[1]


def scan(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the factor of the state before the first step, and the states without it, by doubling."""
    distance = 1
    while distance < a.shape[1]:
        b = torch.cat([b[:, :distance], a[:, distance:] * b[:, :-distance] + b[:, distance:]], 1)
        a = torch.cat([a[:, :distance], a[:, distance:] * a[:, :-distance]], 1)
        distance *= 2
    return a, b


def chunked(size: int, carry: Elementwise, model: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out, state = [], torch.zeros_like(b[:, :1])
    for factors, increments in zip(a.split(size, 1), b.split(size, 1), strict=True):
        products, states = scan(factors, increments)
        out.append(products * carry(state) + states)
        state = out[-1][:, -1:]
    return torch.cat(out, 1)


HONEST = {
    "doubling": doubling,
    "chunks of 16": partial(chunked, 16, torch.clone),
    "chunks of 64": partial(chunked, 64, torch.clone),
    "in order": partial(chunked, 1, torch.clone),
}
CHEATS = {
    "carry left out": partial(chunked, 32, torch.zeros_like),
    "carry in TF32": partial(chunked, 16, round_to_tf32),
    "carry in bf16": partial(chunked, 16, partial(round_to, torch.bfloat16)),
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    decay = torch.sigmoid(3 + torch.randn(BATCH, LENGTH, CHANNELS))
    return [decay, torch.randn(BATCH, LENGTH, CHANNELS)]


def get_init_inputs() -> list[object]:
    return []
