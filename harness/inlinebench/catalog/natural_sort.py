"""Natural sort order for names: digits in them compare as numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Returns a sort key that puts `9_ReLU` before `10_GELU`, and `sample_2` before `sample_10`."""
    parts = _DIGITS.split(name)
    key = [(1, int(part), part) if index % 2 else (0, 0, part) for index, part in enumerate(parts)]
    return tuple(key)
