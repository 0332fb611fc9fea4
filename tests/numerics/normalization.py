"""Normalization by mean and variance over the last dimension, in the arithmetic of kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.numerics import arithmetic
from tests.numerics.arithmetic import newton_rsqrt

Moments = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Root = Callable[[torch.Tensor], torch.Tensor]

MOMENTS: dict[str, Moments] = {**arithmetic.MOMENTS, "E[x^2] - E[x]^2": arithmetic.one_pass}
"""Ways to mean and variance that are accepted where the mean is not large."""
ROOTS: dict[str, Root] = {
    "rsqrt": torch.rsqrt,
    "Newton": newton_rsqrt,
    "division by the root": lambda variance: 1 / torch.sqrt(variance),
}
"""Ways to the reciprocal of the standard deviation that are accepted for float32."""


def normalize(x: torch.Tensor, moments: Moments, root: Root = torch.rsqrt, eps: float = 1e-5) -> torch.Tensor:
    """Subtracts the mean and divides by the standard deviation over the last dimension."""
    mean, variance = moments(x)
    return (x - mean) * root(variance + eps)


def of_half(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and variance of every other value."""
    return arithmetic.two_pass(x[..., ::2])


def without_tail(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and variance without the last 16 values."""
    return arithmetic.two_pass(x[..., :-16])


def unbiased(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the mean, and the sum of squared deviations over n - 1."""
    mean, variance = arithmetic.two_pass(x)
    return mean, variance * (x.shape[-1] / (x.shape[-1] - 1))


WRONG_MOMENTS: dict[str, Moments] = {
    "moments of half of the values": of_half,
    "moments without the tail": without_tail,
}
"""Ways that leave values out."""
