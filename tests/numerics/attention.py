"""Attention of bf16 and fp16 in the arithmetic of kernels.

Each function takes query, key and value of shape (batch, heads, length, width) and returns the attended values, in the
inputs' dtype. A query sees the keys up to its own place.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.numerics.arithmetic import LOG2_E, Unavailable, add_in_order, round_to, round_to_fp8
from tests.numerics.softmax import SMALLEST

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
ON_CPU = (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION)


def sdpa(backend: SDPBackend, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Calls one backend of PyTorch's attention. Raises Unavailable if it cannot run."""
    if query.device.type != "cuda" and backend not in ON_CPU:
        raise Unavailable(f"{backend.name} runs only on CUDA")
    try:
        with warnings.catch_warnings(), sdpa_kernel(backend):
            warnings.simplefilter("ignore")
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise Unavailable(str(error)) from error


def scores_of(query: torch.Tensor, key: torch.Tensor, first_key: int = 0) -> torch.Tensor:
    """Returns the float32 scores of keys that begin at `first_key`, minus infinity where a query doesn't see a key."""
    scores = query.float() @ key.float().transpose(-2, -1) / math.sqrt(query.shape[-1])
    places = torch.arange(key.shape[-2], device=key.device) + first_key
    return scores.masked_fill(places > torch.arange(query.shape[-2], device=key.device)[:, None], -math.inf)


def online(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, size: int = 64) -> torch.Tensor:
    """Loops over blocks of keys as flash attention does, with weights that are rounded before their product."""
    _, total, out = _online(query, key, value, 0, size)
    return (out / total).to(query.dtype)


def split_over_keys(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, parts: int = 4) -> torch.Tensor:
    """Attends to each part of the keys online, then merges the parts, as flash decoding does."""
    size = -(-key.shape[-2] // parts)
    found = [_online(query, keys, values, part * size, 32)
             for part, (keys, values) in enumerate(zip(key.split(size, -2), value.split(size, -2), strict=True))]
    top = torch.stack([each[0] for each in found]).amax(0)
    shares = [torch.exp(each[0] - top) for each in found]
    total = add_in_order(each[1] * share for each, share in zip(found, shares, strict=True))
    return (add_in_order(each[2] * share for each, share in zip(found, shares, strict=True)) / total).to(query.dtype)


def two_passes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Finds each row's largest score and sum first, then rounds normalized weights before their product."""
    scores = scores_of(query, key)
    top = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - top)
    weights = round_to(query.dtype, weights / weights.sum(-1, keepdim=True))
    return (weights @ value.float()).to(query.dtype)


def by_exp2(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Takes powers of two of scores that are scaled by log2(e), and rounds unnormalized weights."""
    scores = scores_of(query, key) * LOG2_E
    weights = torch.exp2(scores - scores.amax(-1, keepdim=True))
    return (round_to(query.dtype, weights) @ value.float() / weights.sum(-1, keepdim=True)).to(query.dtype)


def fp8_weights(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Rounds normalized weights and values to fp8 before their product."""
    weights = round_to_fp8(torch.softmax(scores_of(query, key), -1), scaled=True)
    return (weights @ round_to_fp8(value.float(), scaled=True)).to(query.dtype)


def fp8_values(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaled: bool = False) -> torch.Tensor:
    """Rounds only the values to fp8."""
    return (torch.softmax(scores_of(query, key), -1) @ round_to_fp8(value.float(), scaled)).to(query.dtype)


def fp8_scores(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Rounds queries and keys to fp8 before their product."""
    return two_passes(round_to_fp8(query, scaled=True), round_to_fp8(key, scaled=True), value)


def without_first_keys(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, count: int = 64) -> torch.Tensor:
    """Leaves the first keys out, but for the queries that see no others."""
    scores = scores_of(query, key)
    scores[..., count:, :count] = -math.inf
    return (torch.softmax(scores, -1) @ value.float()).to(query.dtype)


def _online(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, first_key: int, size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the largest score, the sum of the weights, and the sum of the weighted values, not normalized."""
    top = torch.full((*query.shape[:-1], 1), SMALLEST, device=query.device)
    total, out = torch.zeros_like(top), torch.zeros(query.shape, device=query.device)
    for place in range(0, key.shape[-2], size):
        scores = scores_of(query, key[..., place : place + size, :], first_key + place)
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        share, weights = torch.exp(top - new), torch.exp(scores - new)
        total = total * share + weights.sum(-1, keepdim=True)
        out = out * share + round_to(query.dtype, weights) @ value[..., place : place + size, :].float()
        top = new
    return top, total, out


HONEST: dict[str, Attention] = {
    **{f"SDPA {backend.name.lower()}": partial(sdpa, backend)
       for backend in (*ON_CPU, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)},
    "online": online,
    "split over keys": split_over_keys,
    "two passes": two_passes,
    "powers of two": by_exp2,
}
CHEATS: dict[str, Attention] = {
    "fp8 values": fp8_values,
    "fp8 values, scaled": partial(fp8_values, scaled=True),
    "fp8 weights and values": fp8_weights,
    "fp8 queries and keys": fp8_scores,
    "first 64 keys left out": without_first_keys,
}
