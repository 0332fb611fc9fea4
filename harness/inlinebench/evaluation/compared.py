"""Compares one tensor of a call, and describes how it differs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inlinebench.compare.mismatch import find_mismatch
from inlinebench.compare.tolerance import Comparison, Scale, compare, default_tolerance, measure_scale
from inlinebench.records.result import Mismatch


@dataclass(frozen=True)
class Compared:
    """A tensor, what it was compared with, and the result."""

    what: str
    """What the tensor is, for the record."""
    got: torch.Tensor
    """The candidate's tensor."""
    expected: torch.Tensor
    """The reference's tensor."""
    oracle: torch.Tensor | None
    """The oracle's tensor. None: there is no oracle, or it was not asked."""
    tolerance: float
    """The tolerance that applied."""
    scale: Scale
    """The scale that applied."""
    comparison: Comparison
    """The result."""

    @property
    def passed(self) -> bool:
        """Whether no element is wrong."""
        return self.comparison.passed

    def describe(self) -> str:
        """Describes a failure: how many elements are wrong, and the first of them."""
        return self.comparison.describe()

    def mismatch(self) -> Mismatch | None:
        """Finds where and how the values differ, or returns None if they do not.

        Raises torch.OutOfMemoryError if the device has too little memory left for it.
        """
        return find_mismatch(
            self.what, self.got, self.expected, self.oracle, tolerance=self.tolerance, scale=self.scale)


def compared(
    what: str, got: torch.Tensor, expected: torch.Tensor, oracle: torch.Tensor | None = None, *,
    tolerance: float | None, scale: Scale | None = None, strictness: float = 1.0, without_largest: bool = False,
) -> Compared:
    """Compares a tensor.

    Args:
        what: what the tensor is, for the record.
        got: the candidate's tensor.
        expected: the reference's tensor, of the same shape and dtype.
        oracle: the oracle's tensor, or None.
        tolerance: replaces the default tolerance of a floating-point dtype, unless None.
        scale: the scale, or None to measure it.
        strictness: a factor for the tolerance.
        without_largest: whether a measured scale leaves out the largest elements.
    """
    allowed = tolerance_of(expected.dtype, tolerance) * strictness
    if scale is None:
        inexact = expected.is_floating_point() or expected.is_complex()
        exact = expected if oracle is None else oracle
        scale = measure_scale(exact, expected, without_largest=without_largest) if inexact else Scale(0.0, 0.0)
    return Compared(what, got, expected, oracle, allowed, scale, compare(got, expected, oracle, allowed, scale))


def tolerance_of(dtype: torch.dtype, tolerance: float | None) -> float:
    """Returns the tolerance of a dtype: `tolerance` if it is given and the dtype is not exact, else the default."""
    own = default_tolerance(dtype)
    return own if tolerance is None or own == 0.0 else tolerance
