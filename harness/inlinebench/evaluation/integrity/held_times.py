"""The judge's time of a solution, from held calls, and whether it contradicts the reported time. Computes only."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from inlinebench.results.times import Spread
from inlinebench.timing.statistics import quartiles

TOLERANCE, SLACK_MS = 0.04, 0.002
"""By how much the judge's time of a true one may be off in the median: the larger of a share and ms."""
PRECISION, PRECISE_MS = 0.01, 0.003
"""How precisely calls measure the judge's time: `CERTAIN` standard errors are at most the larger of a share and ms."""
FAR_FACTOR, FAR_SLACK_MS = 2.0, 0.1
"""Beyond this factor and so many ms more, no disturbance explains the difference."""
FEWEST, MOST = 12, 144
"""The fewest and the most held calls. On an idle H100 the difference of a solution's and a stand-in's call scatters by
about 10 µs, so 100 calls measure it as precisely as `PRECISE_MS`."""
FEWEST_OF_A_KIND = 3
"""The fewest held calls on each kind of inputs."""
FEWEST_AGAINST, FEWEST_AGAINST_ON_A_KIND = 64, 6
"""The fewest held calls, in all and on one kind of inputs, that can replace the reported time. The time of an honest
solution may scatter by some percent from call to call."""
DOUBT = 2.0
"""By how many standard errors a median must be beyond the limit for the judge to make so many calls."""
CERTAIN, CERTAIN_OF_A_KIND = 3.0, 4.0
"""How many standard errors a median must be beyond the limit to replace the reported time. A kind of inputs takes more,
since there are several, with few calls each."""
LEAST_SPREAD_MS = 0.015
"""The least distance of the quartiles in ms, to compute errors with: few calls can be close to each other by chance."""
NORMAL_ERROR = math.sqrt(math.pi / 2) / 1.349
"""The standard error of the median of normal values, as a share of the distance of their quartiles divided by the root
of their number."""


@dataclass(frozen=True)
class StandInTime:
    """The times of a stand-in in ms."""

    took_ms: float
    """A held call, by the judge's clock."""
    own_ms: float
    """A call that is not held, by the clock of its process, which runs no foreign code."""


class HeldTimes:
    """The judge's times of a solution, as far as they are known, against the reported one.

    The time of a call is by how much its held call takes longer than that of the stand-in right before it, plus the
    stand-in's own time. Work that a solution leaves running on the GPU slows down the stand-in as well. So by how much
    the stand-ins were slower for certain than quiet ones is added, and each counts at most with the slowest of these.
    Since stand-ins drift, by tens of µs within seconds, those from before and after the solution both count.

    The error of a median comes from the scatter of the clock, by how much successive stand-ins differ. The solution's
    own times do not count for it: a solution that takes longer in every third call would decide how much is allowed.

    Args:
        reported_ms: the time that the solution's process reported, that of its slowest kind of inputs.
        kinds: all kinds of inputs.
    """

    def __init__(self, reported_ms: float, kinds: Collection[str]) -> None:
        self.reported_ms, self._kinds = reported_ms, kinds
        self.quiet: tuple[Sequence[StandInTime], ...] = ()
        """Stand-ins from before the solution was loaded, and from after its end. Empty as long as they are not known.
        """
        self._calls: list[tuple[str, float, StandInTime]] = []

    def add(self, kind: str, took_ms: float, stand_in: StandInTime) -> None:
        """Adds a held call on a kind of inputs, and the stand-in before it."""
        self._calls.append((kind, took_ms, stand_in))

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def sufficient(self) -> bool:
        """Whether there are the fewest calls, and those on each kind of inputs."""
        return len(self) >= FEWEST and all(self._made(kind) >= FEWEST_OF_A_KIND for kind in self._kinds)

    @property
    def precise(self) -> bool:
        """Whether more calls would not help: the judge's time is known precisely, or there are enough."""
        if not self.sufficient or len(self) >= MOST:
            return self.sufficient
        if len(self) < FEWEST_AGAINST and self._longer(DOUBT, DOUBT, FEWEST_OF_A_KIND):
            return False
        ms, error = self.estimate()
        return CERTAIN * error <= max(PRECISION * ms, PRECISE_MS)

    @property
    def measured(self) -> Spread:
        """The judge's time in ms, with an interval of `CERTAIN` standard errors around it."""
        ms, error = self.estimate()
        return Spread(ms, max(0.0, ms - CERTAIN * error), ms + CERTAIN * error, len(self))

    @property
    def judged_ms(self) -> float | None:
        """The judge's time if it is longer than the reported one for certain. None if the reported one stands.

        It is that of the slowest kind of inputs, if one alone takes longer for certain.
        """
        longer = self._longer(CERTAIN, CERTAIN_OF_A_KIND, FEWEST_AGAINST_ON_A_KIND)
        return max(self.estimate()[0], *longer) if longer else None

    @property
    def contradicted(self) -> bool:
        """Whether the judge's time is so far from the reported one that no disturbance explains it."""
        ms = self.judged_ms
        return ms is not None and ms > FAR_FACTOR * self.reported_ms + FAR_SLACK_MS

    def estimate(self, kind: str | None = None) -> tuple[float, float]:
        """Returns the median time of a call in ms and its standard error, on one kind of inputs or on all."""
        quiet = [[each.took_ms for each in window] for window in self.quiet if window]
        most = max(map(max, quiet), default=math.inf)
        stand_ins = [min(each.took_ms, most) for _, _, each in self._calls]
        usual = max([median(window) + CERTAIN * _error(window, len(window)) for window in quiet], default=math.inf)
        times = [took - stand_in for (name, took, _), stand_in in zip(self._calls, stand_ins, strict=True)
                 if kind in (None, name)]
        own = median(stand_in.own_ms for _, _, stand_in in self._calls)
        scatter = [after - before for before, after in pairwise(stand_ins)]
        return max(0.0, median(times) + max(0.0, median(stand_ins) - usual) + own), _error(scatter, len(times))

    def _made(self, kind: str) -> int:
        return sum(name == kind for name, _, _ in self._calls)

    def _longer(self, certain: float, certain_of_a_kind: float, fewest: int) -> list[float]:
        """Returns the times of all calls and of kinds of inputs with so many calls, if they are beyond the limit by so
        many standard errors."""
        limit = max((1 + TOLERANCE) * self.reported_ms, self.reported_ms + SLACK_MS)
        kinds = [self.estimate(kind) for kind in self._kinds if self._made(kind) >= fewest]
        found = [(*self.estimate(), certain), *((*kind, certain_of_a_kind) for kind in kinds)]
        return [ms for ms, error, errors in found if ms - errors * error > limit]


def _error(values: Sequence[float], count: int) -> float:
    """Returns the standard error of the median of so many values that scatter as these ones."""
    low, _, high = quartiles(values)
    return NORMAL_ERROR * max(LEAST_SPREAD_MS, high - low) / math.sqrt(count)
