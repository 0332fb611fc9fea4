"""The measured peaks of a device, and the best rate of matrix products at each accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_DOUBLE = (("float64", 1),)
_SINGLE = (("float32", 1), ("tf32", 3), ("float16", 3), ("bfloat16", 6), *_DOUBLE)
_HALF = (("tf32", 1), ("float16", 1), *_SINGLE)
METHODS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "float64": _DOUBLE, "float32": _SINGLE, "tf32": _HALF, "float16": _HALF, "bfloat16": (("bfloat16", 1), *_HALF),
}
"""The methods that reach each accuracy or more: a kind of matrix product, and how many of these products one takes.

float32 operands take three products if split into two parts of TF32 or (scaled into its range) of float16, and six if
split into three parts of bfloat16; the products of the smallest parts are negligible (Ootomo and Yokota, "Recovering
single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022). TF32 and
float16 have equally long mantissas. Not covered: float64 from many products of small integers, which can be faster on
GPUs with few float64 units.
"""


@dataclass(frozen=True)
class Rate:
    """A rate in floating-point operations per second, and the method that reaches it."""

    flops_s: float
    method: str


@dataclass(frozen=True)
class Peaks:
    """The measured peaks of a device. Raises ValueError for an unknown kind, and for values that are not positive and
    finite."""

    copy_bytes_s: float
    """Bytes read plus bytes written per second."""
    matmul: Mapping[str, float]
    """Floating-point operations per second of matrix products by kind (`float32` without TF32, `tf32`, `float64`,
    `float16`, `bfloat16`), without kinds that the device lacks."""
    null_ms: float | None = None
    """Duration of an empty kernel in ms; None if CUPTI cannot measure it."""

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.matmul) - set(METHODS)):
            raise ValueError(f"unknown kinds of matrix products: {', '.join(unknown)}")
        times = () if self.null_ms is None else (self.null_ms,)
        for value in (self.copy_bytes_s, *self.matmul.values(), *times):
            if not isinstance(value, float) or not 0 < value < math.inf:
                raise ValueError(f"{value!r} is not a positive finite speed or time")

    def fastest(self, accuracy: str) -> Rate | None:
        """Returns the best rate of products of this accuracy (a name as in `METHODS`), or None if unknown."""
        rates = [
            Rate(self.matmul[kind] / products, kind if products == 1 else f"{products} products of {kind}")
            for kind, products in METHODS.get(accuracy, ()) if kind in self.matmul
        ]
        return max(rates, key=lambda rate: rate.flops_s, default=None)

    def __str__(self) -> str:
        """Formats the peaks in one line."""
        rates = [(accuracy, rate) for accuracy in METHODS if (rate := self.fastest(accuracy))]
        told = [
            f"{accuracy} {rate.flops_s / 1e12:.3g} TFLOP/s" + (f" ({rate.method})" if rate.method != accuracy else "")
            for accuracy, rate in rates
        ]
        null = "unknown" if self.null_ms is None else f"{self.null_ms * 1e3:.3g} µs"
        told.append(f"empty kernel: {null}")
        return ", ".join([f"copy {self.copy_bytes_s / 1e9:.4g} GB/s read and written", *told])
