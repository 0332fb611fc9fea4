"""Logarithmic axes of charts: their ends and ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MARKS = 9
"""The most ticks of an axis, by default."""
FEWEST = 4
"""The fewest ticks of an axis, unless its range is many decades."""
_MANTISSAS = (tuple(range(1, 10)), (1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis."""

    low: float
    """Its lower end, above 0."""
    high: float
    """Its upper end."""
    ticks: tuple[float, ...]
    """The values with a tick."""

    def at(self, value: float) -> float:
        """Returns the place of a value from 0, the lower end, to 1, the upper one. Values beyond are at the ends."""
        return math.log(self.inside(value) / self.low) / math.log(self.high / self.low)

    def inside(self, value: float) -> float:
        """Clamps `value` to the range of the axis."""
        return min(max(value, self.low), self.high)


def drawable(value: float) -> bool:
    """Whether a value can be drawn on a logarithmic axis: it is positive and neither tiny nor huge."""
    return 1e-100 < value < 1e100


def log_axis(values: Iterable[float], *, room: float = 1.08, most: int = MARKS) -> LogAxis:
    """Returns an axis for all drawable values, from the least over `room` to the greatest times `room`.

    Without drawable values it is for 0.1 to 10. It has about `most` ticks at most.
    """
    found = [value for value in values if drawable(value)] or [0.1, 10.0]
    low, high = min(found) / room, max(found) * room
    return LogAxis(low, high, _ticks(low, high, most))


def _ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Returns round numbers between two ends: some of 1 to 9 in each decade, evenly spaced ones in a narrow range."""
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
    """Returns four to about ten multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / FEWEST
    size = 10.0 ** math.floor(math.log10(rough))
    step = max((size * factor for factor in (1, 2, 5) if size * factor <= rough), default=size)
    start = math.ceil(low / step)
    marks = (float(f"{index * step:.12g}") for index in range(start, math.floor(high / step) + 1))
    return tuple(mark for mark in marks if low <= mark <= high)
