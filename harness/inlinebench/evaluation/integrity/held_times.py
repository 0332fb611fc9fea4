"""The judge's time of a solution, from held calls, and whether it contradicts the reported time. Computes only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from inlinebench.results.times import Spread

TOLERANCE, SLACK_MS = 0.04, 0.01
"""By how much the judge's time may be longer than the reported one: the larger of a share and ms."""
FAR_FACTOR, FAR_SLACK_MS = 2.0, 0.1
"""Beyond this factor and so many ms more, no disturbance explains the difference."""
FEWEST, MOST = 12, 64
"""The fewest and the most held calls."""
FEWEST_OF_A_KIND = 2
"""The fewest held calls on each kind of inputs."""
FASTEST = 0.25
"""The share of all calls that counts. Of the few calls on one kind of inputs, only the fastest counts."""


@dataclass(frozen=True)
class StandInTime:
    """The times of a stand-in in ms."""

    took_ms: float
    """A held call, by the judge's clock."""
    own_ms: float
    """A call that is not held, by the clock of its process, which runs no foreign code."""


class HeldTimes:
    """The judge's known times of a solution against the reported one.

    The judge's time is by how much held calls take longer than those of a stand-in, which alternate with them, plus the
    stand-in's own time. Other work on the machine and changes between processes make some calls longer, by tens of µs,
    and none shorter than its work. So only the fastest calls of both count. A solution cannot make a call shorter than
    its work either. So the judge makes further calls as long as the reported time is too short for them: more calls
    clear an honest solution, and help no other. A solution whose work depends on the values may be fast in some calls
    only, so half of the calls may not be so long that no disturbance explains it.

    Work that a solution leaves running on the GPU slows down the stand-in. So a stand-in counts at most as long as
    quiet ones took, before the solution was loaded or after it ended, whichever is longer. So a time that stood when
    the solution ended still stands when the later ones are known.

    Args:
        reported_ms: the time that the solution's process reported, that of its slowest kind of inputs.
        kinds: all kinds of inputs.
        before: quiet stand-ins, from before the solution was loaded. Empty if there are none.
    """

    def __init__(self, reported_ms: float, kinds: Collection[str], before: Sequence[StandInTime] = ()) -> None:
        self.reported_ms = reported_ms
        self._before = before
        self.after: Sequence[StandInTime] = ()
        """Quiet stand-ins from after the solution's end, as soon as they are known."""
        self._took: dict[str, list[float]] = {kind: [] for kind in kinds}
        self._stand_ins: list[StandInTime] = []

    def add(self, kind: str, took_ms: float, stand_in: StandInTime) -> None:
        """Adds a held call on a kind of inputs, and the stand-in before it."""
        self._took[kind].append(took_ms)
        self._stand_ins.append(stand_in)

    def __len__(self) -> int:
        return len(self._stand_ins)

    @property
    def sufficient(self) -> bool:
        """Whether there are the fewest calls, and those on each kind of inputs."""
        return len(self) >= FEWEST and min(map(len, self._took.values())) >= FEWEST_OF_A_KIND

    @property
    def wanted(self) -> Collection[str]:
        """The kinds of inputs of which a call would help: it is missing, or may clear the reported time. Empty if the
        reported time stands, or if there are enough calls against it."""
        if not self.sufficient:
            return [kind for kind, took in self._took.items() if len(took) < FEWEST_OF_A_KIND] or list(self._took)
        if len(self) >= MOST or self.judged_ms is None:
            return ()
        return [kind for kind, ms in self._by_kind().items() if self._too_long(ms)] or list(self._took)

    @property
    def measured(self) -> Spread:
        """The judge's time in ms, from the fastest to the slowest kind of inputs around that of all calls."""
        ms, kinds = self._time(_fastest(self._all)), self._by_kind().values()
        return Spread(ms, min(ms, *kinds), max(ms, *kinds), len(self))

    @property
    def judged_ms(self) -> float | None:
        """The judge's time if it is too long for the reported one, and None if not.

        It is that on the slowest kind of inputs, or of half of the calls if no disturbance explains that.
        """
        slowest, half = self.measured.high, self._time(median(self._all))
        if self._far(half):
            return max(slowest, half)
        return slowest if self._too_long(slowest) else None

    @property
    def contradicted(self) -> bool:
        """Whether the judge's time is so far from the reported one that no disturbance explains it."""
        ms = self.judged_ms
        return ms is not None and self._far(ms)

    def _far(self, ms: float) -> bool:
        return ms > FAR_FACTOR * self.reported_ms + FAR_SLACK_MS

    def _too_long(self, ms: float) -> bool:
        return ms > max((1 + TOLERANCE) * self.reported_ms, self.reported_ms + SLACK_MS)

    @property
    def _all(self) -> list[float]:
        return [took for each in self._took.values() for took in each]

    def _by_kind(self) -> dict[str, float]:
        return {kind: self._time(min(took)) for kind, took in self._took.items()}

    def _time(self, took_ms: float) -> float:
        """Returns the time in ms of the solution in held calls that took so long."""
        stand_in = _fastest([each.took_ms for each in self._stand_ins])
        quiet = [_second_longest(each) for each in (self._before, self.after) if each]
        stand_in = min(stand_in, max(quiet, default=stand_in))
        return max(0.0, took_ms - stand_in + median(each.own_ms for each in self._stand_ins))


def _fastest(values: Sequence[float]) -> float:
    """Returns the mean of the smallest values."""
    return fmean(sorted(values)[: max(1, round(FASTEST * len(values)))])


def _second_longest(stand_ins: Sequence[StandInTime]) -> float:
    """Returns the time in ms of the slowest stand-in but one, which may be disturbed."""
    return sorted(each.took_ms for each in stand_ins)[-2:][0]
