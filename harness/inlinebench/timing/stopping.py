"""Decides when enough calls have been timed, by stopping criteria over the paired speedups so far."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar, Protocol

from inlinebench.timing.sequential import is_above, is_below
from inlinebench.timing.statistics import quartiles, rank_interval

ALL_MADE = "all calls made"


class Criterion(Protocol):
    """A stopping criterion. `name` is reported in the result if the criterion ends sampling."""

    name: ClassVar[str]

    def met(self, ratios: Sequence[float]) -> bool: ...


@dataclass(frozen=True)
class Precise:
    """Met if the half-width of the median's 95 % interval is below `share` of the median."""

    share: float
    name: ClassVar[str] = "precision reached"

    def met(self, ratios: Sequence[float]) -> bool:
        low, middle, high = rank_interval(ratios)
        return (high - low) / 2 < self.share * middle


@dataclass(frozen=True)
class Settled:
    """Met if the noise (interquartile range over median) no longer changes, because it is then the machine's own.

    The noise counts as settled if it stayed within `share` of its mean over the last `window` samples. The idea is from
    nvbench's stopping criterion on the convergence of the standard deviation.
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
            insort(ordered, ratio)  # sorting again each time would take as long as a call
            noise.append(_noise(ordered))
        return max(noise) - min(noise) <= self.share * fmean(noise)


@dataclass(frozen=True)
class Decided:
    """Met if the median speedup is known to be above or below `value`, also if every speedup is wrong by the share
    `margin`.

    Two neighbouring speedups share a call of the reference, so every second one is left out: the test needs samples
    that are independent.
    """

    value: float
    margin: float
    name: ClassVar[str] = "at_least decided"

    def met(self, ratios: Sequence[float]) -> bool:
        least = [ratio * (1 - self.margin) for ratio in ratios[::2]]
        most = [ratio * (1 + self.margin) for ratio in ratios[::2]]
        return is_above(least, self.value) or is_below(most, self.value)


@dataclass(frozen=True)
class Sampling:
    """How many calls to count. Raises ValueError if `most` is less than `least`."""

    least: int
    """Number of calls that are always made."""
    most: int
    """Number of calls at which sampling ends. Kinds of inputs that lack usable times get more calls afterwards."""
    budget_s: float
    """Time in seconds after which sampling ends."""
    half_width: float
    """Relative half-width of the speedup's interval at which sampling ends. It also ends if the noise has settled."""
    at_least: float | None = None
    """A speedup. Sampling also ends if the median is known to be above or below it."""

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ValueError(f"the largest number of calls ({self.most}) is below the least ({self.least})")

    @property
    def fixed(self) -> Sampling:
        """The same with exactly `least` calls."""
        return replace(self, most=self.least)

    def shared_by(self, workloads: int) -> Sampling:
        """The same for one of the workloads of a set, which share the most calls and the time. `least` stays."""
        most = max(self.least, self.most // workloads)
        return replace(self, most=most, budget_s=self.budget_s / workloads)

    def stop(
        self, counted: int, seconds: float, ratios: Callable[[], Sequence[float]], margin: Callable[[], float]
    ) -> str | None:
        """Returns why to stop after `counted` calls and `seconds`, or None to continue.

        `margin` is the share by which all speedups may be wrong, if there are any.
        """
        if counted < self.least:
            return None
        if counted >= self.most:
            return ALL_MADE
        known = ratios()
        criteria: list[Criterion] = [Precise(self.half_width), Settled()]
        if known and self.at_least is not None:
            criteria.append(Decided(self.at_least, margin()))
        met = next((criterion.name for criterion in criteria if known and criterion.met(known)), None)
        return met or ("time budget" if seconds >= self.budget_s else None)


def _noise(ratios: Sequence[float]) -> float:
    low, middle, high = quartiles(ratios)
    return (high - low) / middle
