"""Compares one tensor of a call, and describes how it differs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inlinebench.compare.mismatch import find_mismatch
from inlinebench.compare.tolerance import Comparison, Limit, by_size, compare, default_tolerance
from inlinebench.results.result import Mismatch


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
    limit: Limit
    """The limit that applied."""
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
        return find_mismatch(self.what, self.got, self.expected, self.oracle, limit=self.limit)


def compared(
    what: str, got: torch.Tensor, expected: torch.Tensor, oracle: torch.Tensor | None = None, *,
    tolerance: float, limit: Limit | None = None,
) -> Compared:
    """Compares a tensor.

    Args:
        what: what the tensor is, for the record.
        got: the candidate's tensor.
        expected: the reference's tensor, of the same shape and dtype.
        oracle: the oracle's tensor, or None.
        tolerance: the tolerance of the bound by size.
        limit: the limit, or None for the bound by size.
    """
    limit = by_size(expected, tolerance) if limit is None else limit
    return Compared(what, got, expected, oracle, limit, compare(got, expected, oracle, limit))


def tolerance_of(dtype: torch.dtype, tolerance: float | None) -> float:
    """Returns the tolerance of a dtype: `tolerance` if it is given and the dtype is not exact, else the default."""
    own = default_tolerance(dtype)
    return own if tolerance is None or own == 0.0 else tolerance
