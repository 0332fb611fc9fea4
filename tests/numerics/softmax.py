"""Ways to the two numbers that a softmax needs of each row: its largest value, and the sum of the exponentials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from tests.numerics.arithmetic import bf16_exp, fast_exp, kahan_sum, pairwise_sum, sum_over_threads

Elementwise = Callable[[torch.Tensor], torch.Tensor]
Normalizer = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
SMALLEST = -1e38
"""A lower bound of the largest value, so that masked values (minus infinity) minus it are not NaN."""


def two_passes(
    x: torch.Tensor, exp: Elementwise = torch.exp, add: Elementwise = sum_over_threads
) -> tuple[torch.Tensor, torch.Tensor]:
    """Finds the largest value, then adds the exponentials."""
    top = x.amax(-1, keepdim=True)
    return top, add(exp(x - top)).unsqueeze(-1)


def online(x: torch.Tensor, exp: Elementwise = torch.exp, size: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads chunks of a row once, and scales the sum down when a larger value comes."""
    top, total = x.new_full((*x.shape[:-1], 1), SMALLEST), x.new_zeros(*x.shape[:-1], 1)
    for chunk in x.split(size, -1):
        new = torch.maximum(top, chunk.amax(-1, keepdim=True))
        total = total * exp(top - new) + pairwise_sum(exp(chunk - new)).unsqueeze(-1)
        top = new
    return top, total


def sampled_sum(every: int, x: torch.Tensor) -> torch.Tensor:
    """Adds one of `every` values, and multiplies the sum."""
    return x[..., ::every].sum(-1) * every


NORMALIZERS: dict[str, Normalizer] = {
    "two passes": two_passes,
    "two passes, pairwise": partial(two_passes, add=pairwise_sum),
    "two passes, Kahan": partial(two_passes, add=kahan_sum),
    "two passes, __expf": partial(two_passes, exp=fast_exp),
    "online": online,
    "online, __expf": partial(online, exp=fast_exp),
}
"""Ways that are accepted for float32."""
PARTIAL_SUMS: dict[str, Normalizer] = {
    "sum over half of the values": partial(two_passes, add=partial(sampled_sum, 2)),
    "tail of the sum left out": partial(two_passes, add=lambda x: x[..., :-16].sum(-1)),
}
"""Ways that leave values out."""
WRONG_NORMALIZERS: dict[str, Normalizer] = {
    **PARTIAL_SUMS,
    "sum of exponentials in bf16": partial(two_passes, exp=bf16_exp),
}
"""Ways that are not accepted. In the logarithm of a long sum, the rounding errors of bf16 cancel, so that leaves
nothing to see."""
