"""Simulates the arithmetic of kernels in PyTorch operators: rounding, order of summation, approximate functions.

Every function works on the CPU and on CUDA, and returns new tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce

import torch

LOG2_E = math.log2(math.e)
LARGEST_FP8 = 448.0
"""The largest value of `float8_e4m3fn`."""
LOW_BITS = 2.0**11
"""The factor of the low part of a split into two fp16 numbers, which keeps it from being subnormal."""


class Unavailable(Exception):
    """An implementation cannot run on this device or in this build of PyTorch."""


# Rounding


def round_to(dtype: torch.dtype, x: torch.Tensor) -> torch.Tensor:
    """Rounds to the values of a smaller floating-point dtype. The dtype of the tensor stays the same."""
    return x.to(dtype).to(x.dtype)


def round_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounds float32 to the nearest number with 10 bits of mantissa, and ties to even, as tensor cores' TF32 has."""
    bits = x.contiguous().view(torch.int32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(torch.isfinite(x), rounded.view(torch.float32), x)


def round_to_fp8(x: torch.Tensor, scaled: bool = False) -> torch.Tensor:
    """Rounds to the values of `float8_e4m3fn`, which saturate. The dtype of the tensor stays the same.

    Args:
        x: the tensor.
        scaled: whether the largest value becomes the largest one of the format, as with a scale for each tensor.
    """
    wide = x.float()
    scale = LARGEST_FP8 / wide.abs().amax().clamp(min=1e-30) if scaled else torch.ones((), device=x.device)
    small = (wide * scale).clamp(-LARGEST_FP8, LARGEST_FP8).to(torch.float8_e4m3fn)
    return (small.float() / scale).to(x.dtype)


def split_to_fp16(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Splits float32 into two fp16 numbers: `x` is about `(high + low / LOW_BITS) / scale`.

    The scale is a power of two that brings the largest value near 2^12. Without it, and without the factor of the low
    part, low parts would be subnormal and lose bits.

    Returns:
        high, low: the parts, which are fp16 numbers in float32.
        scale: the scale, without dimensions.
    """
    exponent = torch.frexp(x.abs().amax().clamp(min=1e-30)).exponent
    scale = torch.exp2((12 - exponent).float())
    high = round_to(torch.float16, x * scale)
    return high, round_to(torch.float16, (x * scale - high) * LOW_BITS), scale


def split_to_bf16(x: torch.Tensor, parts: int = 3) -> list[torch.Tensor]:
    """Splits float32 into bf16 numbers, in float32, whose sum is about `x`. Three parts hold all 24 bits."""
    found: list[torch.Tensor] = []
    for _ in range(parts):
        found.append(round_to(torch.bfloat16, x))
        x = x - found[-1]
    return found


# Sums over the last dimension, in the tensor's dtype


def sequential_sum(x: torch.Tensor) -> torch.Tensor:
    """Adds from the first to the last value."""
    return add_in_order(x.unbind(-1))


def add_in_order(terms: Iterable[torch.Tensor]) -> torch.Tensor:
    """Adds tensors from the first to the last one."""
    return reduce(torch.add, terms)


def add_in_any_order(terms: Iterable[torch.Tensor]) -> torch.Tensor:
    """Adds tensors in a random order, as atomic additions do."""
    listed = list(terms)
    return add_in_order(listed[index] for index in torch.randperm(len(listed)).tolist())


def pairwise_sum(x: torch.Tensor) -> torch.Tensor:
    """Adds neighbours, then neighbouring sums, and so on, as a tree of shuffles does."""
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = torch.nn.functional.pad(x, (0, 1))
        x = x[..., 0::2] + x[..., 1::2]
    return x.squeeze(-1)


def sum_over_threads(x: torch.Tensor, threads: int = 256) -> torch.Tensor:
    """Adds as a block does: each thread adds values that are `threads` apart in order, then the threads' sums are
    added pairwise."""
    return pairwise_sum(add_in_order(in_chunks(x, threads).unbind(-2)))


def sum_of_chunks(x: torch.Tensor, size: int = 1024) -> torch.Tensor:
    """Adds chunks of `size` neighbours in order, then the chunks' sums in order."""
    return sequential_sum(sequential_sum(in_chunks(x, size)))


def sum_of_chunks_in_any_order(x: torch.Tensor, size: int = 1024) -> torch.Tensor:
    """Adds chunks of `size` neighbours pairwise, then the chunks' sums in a random order, as atomic additions do."""
    return add_in_any_order(pairwise_sum(in_chunks(x, size)).unbind(-1))


def kahan_sum(x: torch.Tensor, threads: int = 256) -> torch.Tensor:
    """Adds as `sum_over_threads` does, but each thread carries the rounding error of its sum along."""
    terms = in_chunks(x, threads).unbind(-2)
    total, lost = torch.zeros_like(terms[0]), torch.zeros_like(terms[0])
    for term in terms:
        increment = term - lost
        new = total + increment
        total, lost = new, (new - total) - increment
    return pairwise_sum(total)


def in_chunks(x: torch.Tensor, size: int, fill: float = 0.0) -> torch.Tensor:
    """Splits the last dimension into chunks of `size`: (..., n) becomes (..., chunks, size). `fill` pads the last."""
    return torch.nn.functional.pad(x, (0, -x.shape[-1] % size), value=fill).unflatten(-1, (-1, size))


SUMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "pairwise": pairwise_sum,
    "over threads": sum_over_threads,
    "Kahan": kahan_sum,
    "chunks in order": sum_of_chunks,
    "atomics": sum_of_chunks_in_any_order,
}
"""Orders of summation that are accepted for float32."""


# Mean and variance over the last dimension: both keep it, with one element. The variance is the biased one.


def two_pass(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and variance by a sum of values, then a sum of squared deviations."""
    mean = sum_over_threads(x).unsqueeze(-1) / x.shape[-1]
    return mean, sum_over_threads((x - mean).square()).unsqueeze(-1) / x.shape[-1]


def one_pass(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and variance by E[x^2] - E[x]^2, which cancels where the mean is large."""
    mean, square = (sum_over_threads(each).unsqueeze(-1) / x.shape[-1] for each in (x, x.square()))
    return mean, (square - mean.square()).clamp(min=0)


def welford(x: torch.Tensor, size: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and variance by Welford's recurrence within each of `size` threads, then merges the threads."""
    count = x.shape[-1]
    per_thread, rest = divmod(count, size)
    mean = x.new_zeros(*x.shape[:-1], size)
    squares = torch.zeros_like(mean)
    for step in range(per_thread):
        value = x[..., step * size : (step + 1) * size]
        delta = value - mean
        mean = mean + delta / (step + 1)
        squares = squares + delta * (value - mean)
    counts = torch.full((size,), float(per_thread), dtype=x.dtype, device=x.device)
    if rest:
        tail = x[..., per_thread * size :]
        mean, squares = torch.cat([mean, tail], -1), torch.cat([squares, torch.zeros_like(tail)], -1)
        counts = torch.cat([counts, counts.new_ones(rest)])
    while counts.numel() > 1:
        if counts.numel() % 2:
            mean, squares, counts = (torch.nn.functional.pad(each, (0, 1)) for each in (mean, squares, counts))
        mean, squares, counts = merge_welford(*((each[..., 0::2], each[..., 1::2])
                                                for each in (mean, squares, counts)))
    return mean, squares / count


def merge_welford(
    means: tuple[torch.Tensor, torch.Tensor], squares: tuple[torch.Tensor, torch.Tensor],
    counts: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Merges means, sums of squared deviations and counts of two parts each (Chan, Golub and LeVeque)."""
    total = counts[0] + counts[1]
    share = counts[1] / total.clamp(min=1)
    delta = means[1] - means[0]
    return means[0] + delta * share, squares[0] + squares[1] + delta.square() * counts[0] * share, total


MOMENTS: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "two passes": two_pass,
    "Welford": welford,
}
"""Ways to mean and variance that are accepted for all inputs."""


# Functions of one value


def fast_exp(x: torch.Tensor) -> torch.Tensor:
    """Computes exp(x) as 2^(x log2(e)), as `__expf` does. Its relative error grows with |x|."""
    return torch.exp2(x * LOG2_E)


def bf16_exp(x: torch.Tensor) -> torch.Tensor:
    """Computes exp(x) in bf16."""
    return torch.exp(x.bfloat16()).to(x.dtype)


def newton_reciprocal(x: torch.Tensor) -> torch.Tensor:
    """Computes 1 / x by one Newton step from a reciprocal with 10 bits. Float32 only."""
    guess = round_to_tf32(1 / x)
    return guess * (2 - x * guess)


def newton_of_finite(x: torch.Tensor) -> torch.Tensor:
    """Computes 1 / x by one Newton step, which would make NaN of an infinity. Positive float32 only."""
    return newton_reciprocal(x.clamp(max=2.0**126))


def newton_rsqrt(x: torch.Tensor) -> torch.Tensor:
    """Computes 1 / sqrt(x) by one Newton step from a root with 10 bits. Float32 only."""
    guess = round_to_tf32(x.rsqrt())
    return guess * (1.5 - 0.5 * x * guess * guess)
