"""Logarithmic axes: how far they reach and where their marks are, for whatever was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MARKS = 9
"""An axis has at most so many marks."""
FEWEST = 4
_MANTISSAS = (tuple(range(1, 10)), (1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True)
class LogAxis:
    """From `low` to `high`, both above 0, with a mark at each of `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def spec(self, title: str, **facts: Any) -> dict[str, Any]:
        """The axis in Vega-Lite's words, without the field that lies on it."""
        return {
            "type": "quantitative",
            "scale": {"type": "log", "domain": [self.low, self.high], "nice": False},
            "axis": {"title": title, "values": list(self.ticks), "format": "~g", "labelOverlap": True, **facts},
        }

    def inside(self, value: float) -> float:
        """The nearest to `value` that lies on the axis."""
        return min(max(value, self.low), self.high)


def drawable(value: float) -> bool:
    """Whether a value has a place on a logarithmic axis, in the range that a drawing can tell apart."""
    return 1e-100 < value < 1e100


def log_axis(values: Iterable[float], *, room: float = 1.08, most: int = MARKS) -> LogAxis:
    """An axis that holds all values that can be drawn, with some room at both ends; 0.1 to 10 if there are none."""
    found = [value for value in values if drawable(value)] or [0.1, 10.0]
    low, high = min(found) / room, max(found) * room
    return LogAxis(low, high, _ticks(low, high, most))


def _ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round numbers between two ends: 1, 2, 5 of each decade, or fewer, or evenly spaced ones within a narrow range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in _MANTISSAS:
        marks = [mantissa * 10.0**decade for decade in range(first, last + 1) for mantissa in mantissas]
        ticks = [float(f"{mark:.3g}") for mark in marks if low <= mark <= high]
        if FEWEST <= len(ticks) <= most:
            return tuple(ticks)
    if high / low < 10:
        return _even_ticks(low, high)
    step = math.ceil((last - first) / (most - 1))
    decades = (float(f"1e{decade}") for decade in range(first, last + 1, step))
    return tuple(decade for decade in decades if low <= decade <= high)


def _even_ticks(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, four to about ten of them."""
    rough = (high - low) / FEWEST
    size = 10.0 ** math.floor(math.log10(rough))
    step = max((size * factor for factor in (1, 2, 5) if size * factor <= rough), default=size)
    start = math.ceil(low / step)
    marks = (float(f"{index * step:.12g}") for index in range(start, math.floor(high / step) + 1))
    return tuple(mark for mark in marks if low <= mark <= high)
