"""What the timer is held to: rows of raw figures, their bars and their tables. Pure; used by timing_accuracy.py.

A row knows the cells that it is printed as, and whether it meets its bar. A figure that is missing meets none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

NOT_THERE = "-"
FEWEST = 8
"""Usable calls that a row of device times needs."""
OVER_US = 20.0
"""Device times above this are held to the narrower spread from process to process."""
SPREAD_OVER, SPREAD_BELOW = 0.02, 0.05
AA_SHARE, AA_FASTER = 0.93, 1.01
DIFFER_BY, DIFFER_SHARE = 0.02, 0.95


def number(value: float | None, form: str) -> str:
    """A figure in a format, or a dash for one that isn't there."""
    return NOT_THERE if value is None or math.isnan(value) else format(value, form)


def time_text(us: float | None) -> str:
    """A time in µs, to 10 ns at most."""
    return number(us, ".2f" if us is None or us < 100 else ".1f" if us < 10_000 else ".0f")


def signed(us: float) -> str:
    """A difference in µs."""
    return number(us, "+.2f")


def percent(share: float, digits: int = 2) -> str:
    return number(share, f".{digits}%").replace("%", " %")


def ratio(value: float) -> str:
    """A speedup that is about 1."""
    return number(value, ".4f")


@dataclass(frozen=True)
class Bar:
    """How far two times may lie apart: a share or some µs, whichever is more."""

    share: float
    least_us: float

    def us(self, time_us: float) -> float:
        """What is allowed at a time, in µs."""
        return max(self.share * abs(time_us), self.least_us)

    def allows(self, difference_us: float, time_us: float) -> bool:
        """Whether a difference is within the bar at a time; never if either is no number."""
        return math.isfinite(time_us) and abs(difference_us) <= self.us(time_us)

    def __str__(self) -> str:
        return f"max({percent(self.share, 0)}, {self.least_us:g} µs)"


TRACED, SPUN, FLUSHED = Bar(0.02, 3.0), Bar(0.01, 2.0), Bar(0.01, 0.5)


@dataclass(frozen=True)
class Row:
    """One line of a part's table."""

    COLUMNS: ClassVar[tuple[str, ...]] = ()

    what: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As many as there are columns, without the verdict."""
        raise NotImplementedError

    @property
    def met(self) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Traced(Row):
    """A kernel or a chain of some, by the timer and by CUPTI in the same calls (µs), one figure a call.

    The timer's are as the harness reports them, without what it adds to a call.

    `untraced_us` are calls without CUPTI, `events_us` and `do_bench_us` what other ways to time make of the same work.
    """

    COLUMNS = ("work", "CUPTI (µs)", "timer (µs)", "difference of medians (µs)", "median difference (µs)",
               "allowed (µs)", "timer without CUPTI (µs)", "events around the call (µs)", "`do_bench` (µs)")

    timer_us: list[float]
    cupti_us: list[float]
    untraced_us: list[float] = field(default_factory=list)
    events_us: float | None = None
    do_bench_us: float | None = None

    @property
    def between_medians(self) -> float:
        return middle(self.timer_us) - middle(self.cupti_us)

    @property
    def between_pairs(self) -> float:
        return middle(differences(self.timer_us, self.cupti_us))

    @property
    def cells(self) -> tuple[str, ...]:
        cupti = middle(self.cupti_us)
        return (self.what, time_text(cupti), time_text(middle(self.timer_us)), signed(self.between_medians),
                signed(self.between_pairs), time_text(TRACED.us(cupti)), time_text(middle(self.untraced_us)),
                time_text(self.events_us), time_text(self.do_bench_us))

    @property
    def met(self) -> bool:
        cupti = middle(self.cupti_us)
        apart = (self.between_medians, self.between_pairs)
        return len(self.cupti_us) >= FEWEST and all(TRACED.allows(each, cupti) for each in apart)


@dataclass(frozen=True)
class Spun(Row):
    """A kernel that spins for a known number of SM clock cycles; one figure a call.

    `cycles_per_us` is the clock rate that a long spin saw right behind each, `overhead_us` what the harness takes off a
    call's time: an empty pair of events, and a launch.
    """

    COLUMNS = ("spin", "SM clock (MHz)", "cycles / clock (µs)", "timer (µs)", "taken off (µs)",
               "difference (µs)", "allowed (µs)")

    cycles: list[float]
    cycles_per_us: list[float]
    timer_us: list[float]
    overhead_us: list[float]

    @property
    def expected_us(self) -> list[float]:
        return [cycles / rate for cycles, rate in zip(self.cycles, self.cycles_per_us, strict=True)]

    @property
    def difference(self) -> float:
        """Of what the harness would report from what the cycles took; the median over the calls in µs."""
        return middle(differences(self.timer_us, self.expected_us)) - middle(self.overhead_us)

    @property
    def cells(self) -> tuple[str, ...]:
        expected = middle(self.expected_us)
        return (self.what, number(middle(self.cycles_per_us), ".1f"), time_text(expected),
                time_text(middle(self.timer_us)), time_text(middle(self.overhead_us)), signed(self.difference),
                time_text(SPUN.us(expected)))

    @property
    def met(self) -> bool:
        return len(self.timer_us) >= FEWEST and SPUN.allows(self.difference, middle(self.expected_us))


@dataclass(frozen=True)
class Flushed(Row):
    """A copy kernel (µs) after three flushes in turn: the clock's own, one that surely leaves nothing, one that writes.
    """

    COLUMNS = ("copy", "after the clock's flush (µs)", "after a clean one (µs)", "median difference (µs)",
               "allowed (µs)", "after one that writes (µs)")

    ours_us: list[float]
    clean_us: list[float]
    dirty_us: list[float]

    @property
    def difference(self) -> float:
        return middle(differences(self.ours_us, self.clean_us))

    @property
    def cells(self) -> tuple[str, ...]:
        clean = middle(self.clean_us)
        return (self.what, time_text(middle(self.ours_us)), time_text(clean), signed(self.difference),
                time_text(FLUSHED.us(clean)), time_text(middle(self.dirty_us)))

    @property
    def met(self) -> bool:
        return len(self.clean_us) >= FEWEST and FLUSHED.allows(self.difference, middle(self.clean_us))


@dataclass(frozen=True)
class Repeated(Row):
    """One solution evaluated in several processes: its median time (µs) and its speedup in each."""

    COLUMNS = ("solution", "processes", "time (µs)", "speedup", "lowest", "highest", "spread", "allowed")

    solution_us: list[float] = field(default_factory=list)
    speedups: list[float] = field(default_factory=list)

    @property
    def spread(self) -> float:
        """Highest less lowest speedup over the median one."""
        if len(self.speedups) < 2:
            return math.nan
        return (max(self.speedups) - min(self.speedups)) / middle(self.speedups)

    @property
    def allowed(self) -> float:
        return SPREAD_OVER if middle(self.solution_us) > OVER_US else SPREAD_BELOW

    @property
    def cells(self) -> tuple[str, ...]:
        lowest, highest = (min(self.speedups), max(self.speedups)) if self.speedups else (math.nan, math.nan)
        return (self.what, str(len(self.speedups)), time_text(middle(self.solution_us)),
                *(number(each, ".4g") for each in (middle(self.speedups), lowest, highest)),
                percent(self.spread), f"< {percent(self.allowed, 0)}")

    @property
    def met(self) -> bool:
        return self.spread < self.allowed


@dataclass(frozen=True)
class Evaluated(Row):
    """Evaluations of one pair: low end, median and high end of each one's speedup, and the seconds that it took.

    `failures` are the reasons of those that gave no speedup.
    """

    intervals: list[list[float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def made(self) -> int:
        """How many evaluations there were."""
        return len(self.intervals) + len(self.failures)

    @property
    def medians(self) -> list[float]:
        return [median for _, median, _ in self.intervals]

    def share(self, hits: Iterable[bool]) -> float:
        """Of all evaluations, those that gave no speedup included."""
        return sum(hits) / self.made if self.made else math.nan


@dataclass(frozen=True)
class SelfCompared(Evaluated):
    """A reference against itself."""

    COLUMNS = ("reference", "evaluations", "without a speedup", "1.000 inside", "at least", "lowest speedup",
               "median speedup", "highest speedup", "at most", "s each")

    @property
    def inside(self) -> float:
        return self.share(low <= 1.0 <= high for low, _, high in self.intervals)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, str(self.made), str(len(self.failures)), percent(self.inside), percent(AA_SHARE, 0),
                ratio(min(self.medians, default=math.nan)), ratio(middle(self.medians)),
                ratio(max(self.medians, default=math.nan)), ratio(AA_FASTER), number(middle(self.seconds), ".2f"))

    @property
    def met(self) -> bool:
        return self.inside >= AA_SHARE and max(self.medians, default=math.nan) <= AA_FASTER


@dataclass(frozen=True)
class Differing(Evaluated):
    """A solution that was made slower than its reference; `slower` is the ratio of the times seen when it was made."""

    COLUMNS = ("solution", "made slower by", "evaluations", "without a speedup", "found slower", "at least",
               "median speedup", "expected", "s each")

    slower: float = 1 + DIFFER_BY

    @property
    def found(self) -> float:
        """The share of intervals below 1; one above it found a difference that isn't there."""
        return self.share(high < 1.0 for _, _, high in self.intervals)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, percent(self.slower - 1), str(self.made), str(len(self.failures)), percent(self.found),
                percent(DIFFER_SHARE, 0), ratio(middle(self.medians)), ratio(1 / self.slower),
                number(middle(self.seconds), ".2f"))

    @property
    def met(self) -> bool:
        return self.found >= DIFFER_SHARE


KINDS: Mapping[str, type[Row]] = {
    "cupti": Traced, "spin": Spun, "flush": Flushed, "repeat": Repeated, "aa": SelfCompared, "differ": Differing,
}
TITLES = {
    "cupti": f"Device time against CUPTI, in the same calls; within {TRACED}",
    "spin": f"Spin kernels of known length; within {SPUN}",
    "flush": f"What the cache flush leaves behind; within {FLUSHED}",
    "repeat": "One solution in several processes; spread of the speedup",
    "aa": "References against themselves",
    "differ": f"Solutions that are {percent(DIFFER_BY, 0)} slower than their references",
}


def head(part: str) -> str:
    """What stands above the rows of a part, as Markdown."""
    columns = (*KINDS[part].COLUMNS, "bar")
    rule = " | ".join(["---", *["---:"] * (len(columns) - 2), "---"])
    return f"### {TITLES[part]}\n\n| {' | '.join(columns)} |\n| {rule} |"


def line(row: Row) -> str:
    """A row as Markdown."""
    return f"| {' | '.join([*row.cells, 'met' if row.met else '**missed**'])} |"


def read_row(part: str, data: Mapping[str, Any]) -> Row:
    """The row that `dataclasses.asdict` took apart. Raises TypeError if it is none of that part's."""
    return KINDS[part](**data)


def middle(samples: Sequence[float]) -> float:
    """The median; NaN without samples, which meets no bar."""
    return statistics.median(samples) if samples else math.nan


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Call by call. Raises ValueError if there are more of one than of the other."""
    return [our - their for our, their in zip(ours, theirs, strict=True)]


def spin_for(wanted_us: float, none_us: float, some_us: float, some_cycles: int) -> int:
    """How many cycles a spin kernel needs to add a wanted time to some work.

    Given are the times that one of no cycles and one of some cycles added. Raises ValueError if the kernel alone adds
    more than is wanted, or its cycles nothing.
    """
    if not none_us < min(wanted_us, some_us):
        raise ValueError(f"no spin adds {wanted_us:.3g} µs: {none_us:.3g} µs with 0 cycles, {some_us:.3g} µs with "
                         f"{some_cycles}")
    return round(some_cycles * (wanted_us - none_us) / (some_us - none_us))
