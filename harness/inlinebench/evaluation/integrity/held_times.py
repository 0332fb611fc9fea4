"""Decides whether a reported time agrees with held calls, which the judge times. Pure functions of times."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from inlinebench.timing.statistics import quartiles

TOLERANCE, SLACK_MS = 0.05, 0.005
"""How far the judge's time may exceed the reported time, which then stands: the larger of a share and ms."""
FAR_FACTOR, FAR_SLACK_MS = 2.0, 0.1
"""Beyond this factor and so many ms more, no disturbance explains the difference."""
FEWEST, MOST = 12, 96
"""The fewest and the most held calls. On an H100 the difference of a solution's and a stand-in's call scatters by about
10 µs, so the median of 12 is known to 4 µs."""
FEWEST_OF_A_KIND = 3
"""The fewest held calls on each kind of inputs."""
FEWEST_AGAINST = 36
"""The fewest held calls that can contradict the reported time before all calls are made."""
PASSING, FAILING = 2.0, 4.0
"""How many standard errors away from the limit a median must be to agree, and to disagree. A longer time than reported
takes more evidence, since it is looked for after each call and in each kind of inputs."""
IN_THE_END = 1.0
"""The same for the median of all calls when no more are made, and for a kind of inputs that needs no more calls."""
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
    stand-in's own time. Work that a solution leaves running on the GPU slows down the stand-in as well. So a stand-in
    counts at most with the upper quartile of `quiet` ones, which ran when the solution's process had ended.

    The error of a median comes from the scatter of the clock, by how much successive stand-ins differ. The solution's
    own times do not count for it: a solution that takes longer in every third call would decide how much is allowed.

    Args:
        reported_ms: the time that the solution's process reported, that of its slowest kind of inputs.
        kinds: all kinds of inputs.
    """

    def __init__(self, reported_ms: float, kinds: Collection[str]) -> None:
        self.reported_ms, self._kinds = reported_ms, kinds
        self.quiet: Sequence[StandInTime] = ()
        self._calls: list[tuple[str, float, StandInTime]] = []

    def add(self, kind: str, took_ms: float, stand_in: StandInTime) -> None:
        """Adds a held call on a kind of inputs, and the stand-in before it."""
        self._calls.append((kind, took_ms, stand_in))

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def limit_ms(self) -> float:
        """The longest time of the judge's that agrees with the reported one."""
        return self.reported_ms + max(TOLERANCE * self.reported_ms, SLACK_MS)

    @property
    def sufficient(self) -> bool:
        """Whether there are the fewest calls, and those on each kind of inputs."""
        return len(self) >= FEWEST and all(self._made(kind) >= FEWEST_OF_A_KIND for kind in self._kinds)

    @property
    def decided(self) -> bool:
        """Whether more calls would change nothing: the times agree or disagree for certain, or there are enough."""
        if not self.sufficient:
            return False
        if len(self) >= MOST:
            return True
        ms, error = self.estimate()
        if ms + PASSING * error <= self.limit_ms:
            return not self._beyond(IN_THE_END)
        return len(self) >= FEWEST_AGAINST and ms - FAILING * error > self.limit_ms

    @property
    def judged_ms(self) -> float | None:
        """The judge's time if it disagrees with the reported one, which is too short then. None if they agree.

        It is that of the slowest kind of inputs, if one alone disagrees for certain.
        """
        whole, error = self.estimate()
        slow = self._beyond(FAILING)
        return max([whole, *slow]) if slow or whole - IN_THE_END * error > self.limit_ms else None

    @property
    def contradicted(self) -> bool:
        """Whether the judge's time is so far from the reported one that no disturbance explains it."""
        ms = self.judged_ms
        return ms is not None and ms > FAR_FACTOR * self.reported_ms + FAR_SLACK_MS

    def estimate(self, kind: str | None = None) -> tuple[float, float]:
        """Returns the median time of a call in ms and its standard error, on one kind of inputs or on all."""
        most = quartiles([each.took_ms for each in self.quiet])[2] if self.quiet else math.inf
        stand_ins = [min(stand_in.took_ms, most) for _, _, stand_in in self._calls]
        differences = [took - stand_in for (name, took, _), stand_in in zip(self._calls, stand_ins, strict=True)
                       if kind in (None, name)]
        low, _, high = quartiles([after - before for before, after in pairwise(stand_ins)])
        own = median(stand_in.own_ms for _, _, stand_in in self._calls)
        error = NORMAL_ERROR * max(LEAST_SPREAD_MS, high - low) / math.sqrt(len(differences))
        return max(0.0, median(differences) + own), error

    def _made(self, kind: str) -> int:
        return sum(name == kind for name, _, _ in self._calls)

    def _beyond(self, errors: float) -> list[float]:
        """Returns the times of the kinds of inputs that are beyond the limit by so many standard errors."""
        found = [self.estimate(kind) for kind in self._kinds if self._made(kind) >= FEWEST_OF_A_KIND]
        return [ms for ms, error in found if ms - errors * error > self.limit_ms]
