"""The judge's time of a solution, from held calls, and whether it contradicts the reported time. Computes only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean, median
from typing import TypeVar

from inlinebench.results.times import Spread

Item = TypeVar("Item")

TOLERANCE, SLACK_MS = 0.04, 0.01
"""By how much the judge's time may be longer than is allowed: the larger of a share and ms."""
FAR_FACTOR, FAR_SLACK_MS = 2.0, 0.1
"""Beyond this factor and so many ms more, no disturbance explains the difference."""
FEWEST, MOST = 12, 64
"""The fewest and the most held calls."""
FEWEST_OF_A_KIND = 2
"""The fewest held calls on each kind of inputs."""
FEWEST_IN_DOUBT = 16
"""The fewest held calls on a kind of inputs that needs more time than is allowed on others. What is allowed on it may
be less later, when no further calls can be made."""
FASTEST = 0.25
"""The share of all calls that counts. Of the few calls on one kind of inputs, only the fastest counts."""
NEAR = 6
"""A call is compared with the stand-in before it, and with so many before and after that one."""
DRIFT_MS = 0.02
"""How many ms longer than a quiet stand-in another one may be because the host's speed changes within seconds."""


@dataclass(frozen=True)
class StandInTime:
    """The times of a stand-in in ms."""

    took_ms: float
    """A held call, by the judge's clock."""
    own_ms: float
    """A call that is not held, by the clock of its process, which runs no foreign code."""


@dataclass(frozen=True)
class JudgedTime:
    """The judge's time of a call in ms, with how long it may take if the reported times are true."""

    ms: float
    allowed_ms: float

    @property
    def factor(self) -> float:
        """How many times as long as allowed it is."""
        return self.ms / self.allowed_ms

    @property
    def too_long(self) -> bool:
        """Whether it is longer than the tolerance allows."""
        return self.ms > max((1 + TOLERANCE) * self.allowed_ms, self.allowed_ms + SLACK_MS)

    @property
    def far_ms(self) -> float:
        """By how many ms it is longer than what a disturbance explains; negative if it is not."""
        return self.ms - (FAR_FACTOR * self.allowed_ms + FAR_SLACK_MS)


class HeldTimes:
    """The judge's known times of a solution against the reported ones.

    The judge's time is by how much held calls take longer than those of a stand-in, which alternate with them, plus the
    stand-in's own time. Other work on the machine and changes between processes make some calls longer, by tens of µs,
    and none shorter than its work. So only the fastest calls of both count. The host's speed makes all calls longer or
    shorter together for some time, by tens of µs, too. So each call is compared with the stand-ins near it. A solution
    cannot make a call shorter than its work either. So the judge makes further calls as long as the reported times are
    too short for them: more calls clear an honest solution, and help no other. A solution whose work depends on the
    values may be fast in some calls only, so half of the calls may not be so long that no disturbance explains it.

    Work that a solution leaves running on the GPU slows down the stand-in. So a stand-in counts at most a little longer
    (`DRIFT_MS`) than quiet ones took, before the solution was loaded or after it ended, whichever is longer. So a time
    that stood when the solution ended still stands when the later ones are known.

    Args:
        allowed_ms: how long a call may take in ms on each kind of inputs, if the reported times are true.
        before: quiet stand-ins, from before the solution was loaded. Empty if there are none.
    """

    def __init__(self, allowed_ms: Mapping[str, float], before: Sequence[StandInTime] = ()) -> None:
        self.allowed_ms = dict(allowed_ms)
        """What is allowed, which may be less if the solution turns out to have slowed down the reference."""
        self._before = before
        self.after: Sequence[StandInTime] = ()
        """Quiet stand-ins from after the solution's end, as soon as they are known."""
        self._made: list[tuple[str, float]] = []
        self._stand_ins: list[StandInTime] = []

    def add(self, kind: str, took_ms: float, stand_in: StandInTime) -> None:
        """Adds a held call on a kind of inputs, and the stand-in before it."""
        self._made.append((kind, took_ms))
        self._stand_ins.append(stand_in)

    def __len__(self) -> int:
        return len(self._stand_ins)

    @property
    def sufficient(self) -> bool:
        """Whether there are the fewest calls, and those on each kind of inputs."""
        return len(self) >= FEWEST and not self._missing(self.allowed_ms, FEWEST_OF_A_KIND)

    @property
    def wanted(self) -> Collection[str]:
        """The kinds of inputs of which a call would help: it is missing, or may clear the reported times. Empty if
        these stand, or if there are enough calls against them."""
        if not self.sufficient:
            return self._missing(self.allowed_ms, FEWEST_OF_A_KIND) or list(self.allowed_ms)
        if len(self) >= MOST:
            return ()
        if self.judged is None:
            return self._missing(self.doubtful, FEWEST_IN_DOUBT)
        return [kind for kind, judged in _by_kind(self._calls()).items() if judged.too_long] or list(self.allowed_ms)

    @property
    def doubtful(self) -> Collection[str]:
        """The kinds of inputs on which calls take longer than the least that is allowed on any kind."""
        least = min(self.allowed_ms.values())
        return [kind for kind, judged in _by_kind(self._calls()).items() if JudgedTime(judged.ms, least).too_long]

    @property
    def measured(self) -> Spread:
        """The judge's time in ms, from the fastest to the slowest kind of inputs around that of all calls."""
        calls = self._calls()
        ms, kinds = _together(calls).ms, [each.ms for each in _by_kind(calls).values()]
        return Spread(max(0.0, ms), max(0.0, min(ms, *kinds)), max(0.0, ms, *kinds), len(self))

    @property
    def judged(self) -> JudgedTime | None:
        """The judge's time that is the longest for what is allowed, if it is too long, and None if not.

        It is that on one kind of inputs, that of the fastest calls, or that of half of the calls if no disturbance
        explains that.
        """
        calls = self._calls()
        found = [each for each in (_together(calls), *_by_kind(calls).values()) if each.too_long]
        half = sorted(_all(calls), key=lambda each: each.far_ms)[(len(self) - 1) // 2]
        return max([*found, half] if half.far_ms > 0 else found, key=lambda each: each.factor, default=None)

    @property
    def contradicted(self) -> bool:
        """Whether the judge's time is so far from what is allowed that no disturbance explains it."""
        return self.judged is not None and self.judged.far_ms > 0

    def _missing(self, kinds: Iterable[str], fewest: int) -> list[str]:
        """Returns which of these kinds of inputs have too few calls."""
        made = Counter(kind for kind, _ in self._made)
        return [kind for kind in kinds if made[kind] < fewest]

    def _calls(self) -> dict[str, list[JudgedTime]]:
        """Returns the judge's times of all calls, by kind of inputs. Noise may make some negative."""
        own, quiet = median(each.own_ms for each in self._stand_ins), self._quiet_ms
        found: dict[str, list[JudgedTime]] = {kind: [] for kind in self.allowed_ms}
        for number, (kind, took_ms) in enumerate(self._made):
            near = self._stand_ins[max(0, number - NEAR) : number + NEAR + 1]
            stand_in = min(quiet, fmean(_smallest([each.took_ms for each in near], key=float)))
            found[kind].append(JudgedTime(took_ms - stand_in + own, self.allowed_ms[kind]))
        return found

    @property
    def _quiet_ms(self) -> float:
        """How long in ms a stand-in counts at most."""
        found = [_second_longest(each) for each in (self._before, self.after) if each]
        return max(found) + DRIFT_MS if found else inf


def _all(calls: Mapping[str, Sequence[JudgedTime]]) -> list[JudgedTime]:
    return [each for found in calls.values() for each in found]


def _by_kind(calls: Mapping[str, Sequence[JudgedTime]]) -> dict[str, JudgedTime]:
    """Returns the fastest call on each kind of inputs."""
    return {kind: min(found, key=lambda each: each.ms) for kind, found in calls.items()}


def _together(calls: Mapping[str, Sequence[JudgedTime]]) -> JudgedTime:
    """Returns the mean of the share of all calls that counts, the fastest for what is allowed."""
    fastest = _smallest(_all(calls), key=lambda each: each.ms - each.allowed_ms)
    return JudgedTime(fmean(each.ms for each in fastest), fmean(each.allowed_ms for each in fastest))


def _smallest(values: Sequence[Item], key: Callable[[Item], float]) -> list[Item]:
    """Returns the share of values that counts, the smallest ones by a key."""
    return sorted(values, key=key)[: max(1, round(FASTEST * len(values)))]


def _second_longest(stand_ins: Sequence[StandInTime]) -> float:
    """Returns the time in ms of the slowest stand-in but one, which may be disturbed."""
    return sorted(each.took_ms for each in stand_ins)[-2:][0]
