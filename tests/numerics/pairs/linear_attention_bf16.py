"""Causal linear attention in bfloat16: chunks with float32 states against a loop over time."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import round_to, round_to_fp8
from tests.numerics.cheats import BITS_16, PARTIAL_WORK
from tests.numerics.softmax import Elementwise

BATCH = 4
HEADS = 16
LENGTH = 512
WIDTH = 64

SHAPES = {"small": {"BATCH": 2, "HEADS": 2, "LENGTH": 80, "WIDTH": 16}}


class Model(nn.Module):
    """Adds products of keys and values to a state, and multiplies it by each query."""

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(query.dtype, torch.float32)
        state = torch.zeros(*key.shape[:2], key.shape[-1], value.shape[-1], dtype=wide, device=key.device)
        out = []
        for step in range(query.shape[2]):
            state = state + key[:, :, step, :, None].to(wide) * value[:, :, step, None, :].to(wide)
            out.append((query[:, :, step, None, :].to(wide) @ state).squeeze(2))
        return torch.stack(out, 2).to(query.dtype)


def chunked(
    size: int, rounding: Elementwise, carry: Elementwise, model: nn.Module, *inputs: torch.Tensor
) -> torch.Tensor:
    """Adds the scores within a chunk, rounded, and the state before it, which is kept in float32.

    The inputs are query, key and value.
    """
    state: torch.Tensor | float = 0.0
    out = []
    for queries, keys, values in zip(*(each.float().split(size, 2) for each in inputs), strict=True):
        scores = rounding(torch.tril(queries @ keys.transpose(-2, -1)))
        inside = scores @ values
        out.append(inside + queries @ carry(state) if isinstance(state, torch.Tensor) else inside)
        state = state + keys.transpose(-2, -1) @ values
    return torch.cat(out, 2).to(inputs[0].dtype)


def all_scores(model: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = torch.tril(query.float() @ key.float().transpose(-2, -1))
    return (round_to(query.dtype, scores) @ value.float()).to(query.dtype)


to_bf16 = partial(round_to, torch.bfloat16)
to_fp8 = partial(round_to_fp8, scaled=True)
HONEST = {
    "chunks of 16": partial(chunked, 16, to_bf16, torch.clone),
    "chunks of 64": partial(chunked, 64, to_bf16, torch.clone),
    "chunks of 64, scores in float32": partial(chunked, 64, torch.clone, torch.clone),
    "chunks of 64, state in bf16 for its product": partial(chunked, 64, to_bf16, to_bf16),
    "all scores": all_scores,
}
CHEATS = {
    "state in fp8": partial(chunked, 16, to_bf16, to_fp8),
    "scores in fp8": partial(chunked, 64, to_fp8, torch.clone),
    "state left out": partial(chunked, 64, to_bf16, torch.zeros_like),
    **BITS_16,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []
