"""The CPU needs no start."""

from __future__ import annotations


def wake(index: int) -> None:
    """Does nothing."""
