"""Matrix products of float32, bf16 and fp16 in the arithmetic of kernels.

Each function takes `a` (..., M, K) and `b` (..., K, N) and returns the float32 product (..., M, N). Factors that are
16 bits wide are multiplied in float32, where their products are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from tests.numerics.arithmetic import (
    LOW_BITS,
    add_in_any_order,
    add_in_order,
    round_to,
    round_to_fp8,
    round_to_tf32,
    split_to_bf16,
    split_to_fp16,
)

Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def whole(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiplies as PyTorch does in float32."""
    return a.float() @ b.float()


def partial_products(a: torch.Tensor, b: torch.Tensor, parts: int) -> list[torch.Tensor]:
    """Returns the products of `parts` parts of K."""
    pieces = zip(a.float().chunk(parts, -1), b.float().chunk(parts, -2), strict=True)
    return [one @ other for one, other in pieces]


def split_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Adds the products of eight parts of K in order."""
    return add_in_order(partial_products(a, b, 8))


def split_k_atomics(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Adds the products of 16 parts of K in a random order."""
    return add_in_any_order(partial_products(a, b, 16))


def by_mma(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Adds products of 16 columns by 16 rows in order, as a loop over tensor core instructions does."""
    return add_in_order(partial_products(a, b, max(1, a.shape[-1] // 16)))


def sequential_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Adds the products for each element in order of K, as a thread with one accumulator does."""
    rows, columns = a.float().unsqueeze(-1), b.float().unsqueeze(-2)
    total = rows[..., 0, :] * columns[..., 0, :, :]
    for k in range(1, a.shape[-1]):
        total.addcmul_(rows[..., k, :], columns[..., k, :, :])
    return total


def fp16_in_three(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Splits both factors into two fp16 numbers each, and leaves the product of the low parts out."""
    high_a, low_a, scale_a = split_to_fp16(a)
    high_b, low_b, scale_b = split_to_fp16(b)
    return (high_a @ high_b + (high_a @ low_b + low_a @ high_b) / LOW_BITS) / scale_a / scale_b


def fp16_in_one(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Keeps only the product of the high parts of `fp16_in_three`."""
    high_a, _, scale_a = split_to_fp16(a)
    high_b, _, scale_b = split_to_fp16(b)
    return high_a @ high_b / scale_a / scale_b


def bf16_in_several(a: torch.Tensor, b: torch.Tensor, largest: int = 2) -> torch.Tensor:
    """Splits both factors into three bf16 numbers each, and multiplies the parts whose indices add up to at most
    `largest`, the smallest products first: six products for 2."""
    left, right = split_to_bf16(a), split_to_bf16(b)
    chosen = [(i, j) for i in range(3) for j in range(3) if i + j <= largest]
    return add_in_order(left[i] @ right[j] for i, j in sorted(chosen, key=sum, reverse=True))


def rounded(rounding: Callable[[torch.Tensor], torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Rounds both factors before a product in float32."""
    return rounding(a.float()) @ rounding(b.float())


def without_tail(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Leaves the last part of K out: what doesn't fill a tile of 16, or a tile."""
    rest = a.shape[-1] % 16 or 16
    return a[..., :-rest].float() @ b[..., :-rest, :].float()


ACCUMULATIONS: dict[str, Product] = {
    "split K": split_k,
    "split K, atomics": split_k_atomics,
    "steps of 16": by_mma,
}
"""Orders of summation that are accepted for factors of any dtype."""
FLOAT32: dict[str, Product] = {
    **ACCUMULATIONS,
    "sequential K": sequential_k,
    "fp16 in three products": fp16_in_three,
    "bf16 in six products": bf16_in_several,
    "bf16 in nine products": partial(bf16_in_several, largest=4),
}
"""Products of float32 that are as accurate as a product in float32."""
LESS_THAN_FLOAT32: dict[str, Product] = {
    "TF32": partial(rounded, round_to_tf32),
    "bf16": partial(rounded, partial(round_to, torch.bfloat16)),
    "one fp16 product of three": fp16_in_one,
    "tail of K left out": without_tail,
}
"""Products that are not, or leave something out."""
LESS_THAN_16_BITS: dict[str, Product] = {
    "fp8": partial(rounded, round_to_fp8),
    "fp8, scaled": partial(rounded, partial(round_to_fp8, scaled=True)),
    "tail of K left out": without_tail,
}
"""Products that are less accurate than one of bf16 or fp16, or leave something out."""
