"""When enough calls have been timed: small criteria over the paired speedups so far, between a least and a most."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar, Protocol

from inlinebench.timing.statistics import quartiles, rank_interval

ALL_MADE = "all calls made"


class Criterion(Protocol):
    """Says whether more samples would add nothing; `name` is what the result says then."""

    name: ClassVar[str]

    def met(self, ratios: Sequence[float]) -> bool: ...


@dataclass(frozen=True)
class Precise:
    """The half-width of the 95 % interval of the median is under this share of it."""

    share: float
    name: ClassVar[str] = "precision reached"

    def met(self, ratios: Sequence[float]) -> bool:
        low, middle, high = rank_interval(ratios)
        return (high - low) / 2 < self.share * middle


@dataclass(frozen=True)
class Settled:
    """The noise, as the quartiles' distance over the median, no longer changes: it is the machine's own.

    It counts as settled if over the last `window` samples it stayed within `share` of its mean. The idea is that of
    nvbench's stopping by the standard deviation's own convergence.
    """

    window: int = 32
    share: float = 0.05
    name: ClassVar[str] = "noise settled"

    def met(self, ratios: Sequence[float]) -> bool:
        if len(ratios) < 2 * self.window:
            return False
        ordered = sorted(ratios[: -self.window])
        noise = [_noise(ordered)]
        for ratio in ratios[-self.window :]:
            insort(ordered, ratio)  # to sort each time anew would take as long as a call
            noise.append(_noise(ordered))
        return max(noise) - min(noise) <= self.share * fmean(noise)


@dataclass(frozen=True)
class Sampling:
    """How many counted calls: at least `least`, at most `most`, no more after `budget_s` seconds, and in between until
    the speedup's interval is within `half_width` (a share) or its noise has settled.

    Raises ValueError where the most is less than the least.
    """

    least: int
    most: int
    budget_s: float
    half_width: float

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ValueError(f"at least {self.least} calls can't be at most {self.most}")

    @property
    def fixed(self) -> Sampling:
        """The least number of calls, and no more."""
        return replace(self, most=self.least)

    def stop(self, counted: int, seconds: float, ratios: Callable[[], Sequence[float]]) -> str | None:
        """Why no more calls are to be made after so many in so many seconds; None if there are to be more."""
        if counted < self.least:
            return None
        if counted >= self.most:
            return ALL_MADE
        known = ratios()
        criteria: tuple[Criterion, ...] = (Precise(self.half_width), Settled())
        met = next((criterion.name for criterion in criteria if known and criterion.met(known)), None)
        return met or ("time budget" if seconds >= self.budget_s else None)


def _noise(ratios: Sequence[float]) -> float:
    low, middle, high = quartiles(ratios)
    return (high - low) / middle
