"""Counts how far numbers with different bits are apart, in units in the last place (ULP)."""

from __future__ import annotations

import math

import torch

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integers of each number of bytes."""


def differing(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns for each element of two tensors of the same shape and dtype whether its bits differ (bool)."""
    pair = [tensor.contiguous().view(-1).view(torch.uint8).view(tensor.numel(), tensor.element_size())
            for tensor in (one, other)]
    return (pair[0] != pair[1]).any(dim=-1).view(one.shape)


def ulps_between(one: torch.Tensor, other: torch.Tensor) -> float:
    """Returns the largest distance between elements of two floating-point tensors of the same shape and dtype in ULP.

    Neighbours among the numbers of a dtype are 1 ULP apart, and 0 and -0 are the same number. The distance is infinite
    if an element is NaN or infinite in one of the tensors. It is exact below 2**53, and 0.0 for tensors without
    elements.
    """
    if not one.numel():
        return 0.0
    if not bool((one.double().isfinite() & other.double().isfinite()).all()):
        return math.inf
    place, second = _place(one), _place(other)
    same_sign = (place < 0) == (second < 0)
    apart = torch.where(same_sign, place - second, 0).abs().double()
    across = torch.where(same_sign, 0.0, place.abs().double() + second.abs().double())
    return float((apart + across).max())


def _place(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the place of each number among all of its dtype: that of 0 is 0, and that of -x is minus that of x."""
    integer = INTEGERS[tensor.element_size()]
    bits = tensor.contiguous().view(-1).view(integer).to(torch.int64)
    return torch.where(bits < 0, torch.iinfo(integer).min - bits, bits)
