"""The rows of timing_accuracy.py: raw figures, their bars and their tables. Does not measure anything.

A row has the cells of its table and knows whether it meets its bar. A missing figure misses its bar.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

NOT_THERE = "-"
FEWEST = 8
"""The fewest usable calls of a row of device times."""
OVER_US = 20.0
"""Device times above this have the narrower bar for the spread between processes."""
SPREAD_OVER, SPREAD_BELOW = 0.02, 0.05
AA_SHARE, AA_FASTER = 0.93, 1.01
DIFFER_BY, DIFFER_SHARE = 0.02, 0.95


def number(value: float | None, form: str) -> str:
    """Formats a figure; a dash if it is missing."""
    return NOT_THERE if value is None or math.isnan(value) else format(value, form)


def time_text(us: float | None) -> str:
    """Formats a time in µs, to 10 ns at most."""
    return number(us, ".2f" if us is None or us < 100 else ".1f" if us < 10_000 else ".0f")


def signed(us: float) -> str:
    """Formats a difference in µs."""
    return number(us, "+.2f")


def percent(share: float, digits: int = 2) -> str:
    return number(share, f".{digits}%").replace("%", " %")


def ratio(value: float) -> str:
    """Formats a speedup of about 1."""
    return number(value, ".4f")


@dataclass(frozen=True)
class Bar:
    """The allowed difference of two times: a share or an absolute time, whichever is larger."""


    share: float
    """The share of the time."""
    least_us: float
    """The absolute time in µs."""

    def us(self, time_us: float) -> float:
        """Returns the allowed difference at a time, in µs."""
        return max(self.share * abs(time_us), self.least_us)

    def allows(self, difference_us: float, time_us: float) -> bool:
        """Whether a difference is within the bar at a time. False if one of them is NaN or the time is infinite."""
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
        """The cells of the row, one for each column."""
        raise NotImplementedError

    @property
    def met(self) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Traced(Row):
    """A kernel or a chain of kernels, timed by the timer and by CUPTI in the same calls, in µs."""

    COLUMNS = ("work", "CUPTI (µs)", "timer (µs)", "difference of medians (µs)", "median difference (µs)",
               "allowed (µs)", "timer without CUPTI (µs)", "events around the call (µs)", "`do_bench` (µs)")

    timer_us: list[float]
    """Times of the timer, one for each call, without its overhead, as the harness reports them."""
    cupti_us: list[float]
    """Times of CUPTI, one for each call."""
    untraced_us: list[float] = field(default_factory=list)
    """Times of the timer in calls without CUPTI."""
    events_us: float | None = None
    """The median of CUDA events around the call."""
    do_bench_us: float | None = None
    """The median of Triton's `do_bench`."""

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
    """A kernel that spins for a known number of SM clock cycles."""

    COLUMNS = ("spin", "SM clock (MHz)", "cycles / clock (µs)", "timer (µs)", "taken off (µs)",
               "difference (µs)", "allowed (µs)")

    cycles: list[float]
    """The cycles of each call."""
    cycles_per_us: list[float]
    """The clock rate that a long spin measured right after each call."""
    timer_us: list[float]
    """The time of each call by the timer."""
    overhead_us: list[float]
    """The overhead that the harness subtracts from each time: an empty pair of events, and a launch."""

    @property
    def expected_us(self) -> list[float]:
        """The expected time of each call."""
        return [cycles / rate for cycles, rate in zip(self.cycles, self.cycles_per_us, strict=True)]

    @property
    def difference(self) -> float:
        """The median difference between the time that the harness reports and the expected time, in µs."""
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
    """A copy kernel, in µs, after three kinds of flush: the clock's own, a clean one, and one that writes."""

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
    """One solution evaluated in several processes: its median time in µs and its speedup in each."""

    COLUMNS = ("solution", "processes", "time (µs)", "speedup", "lowest", "highest", "spread", "allowed")

    solution_us: list[float] = field(default_factory=list)
    speedups: list[float] = field(default_factory=list)

    @property
    def spread(self) -> float:
        """The difference between the highest and the lowest speedup, over the median."""
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
    """Repeated evaluations of one solution."""

    intervals: list[list[float]] = field(default_factory=list)
    """Low, median and high of each evaluation's speedup."""
    seconds: list[float] = field(default_factory=list)
    """The seconds of each evaluation."""
    failures: list[str] = field(default_factory=list)
    """The reasons of evaluations without a speedup."""

    @property
    def made(self) -> int:
        """The number of evaluations."""
        return len(self.intervals) + len(self.failures)

    @property
    def medians(self) -> list[float]:
        return [median for _, median, _ in self.intervals]

    def share(self, hits: Iterable[bool]) -> float:
        """Returns the share of hits among all evaluations, including those without a speedup."""
        return sum(hits) / self.made if self.made else math.nan


@dataclass(frozen=True)
class SelfCompared(Evaluated):
    """A reference evaluated against itself."""

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
    """A solution that is deliberately slower than its reference."""

    COLUMNS = ("solution", "made slower by", "evaluations", "without a speedup", "found slower", "at least",
               "median speedup", "expected", "s each")

    slower: float = 1 + DIFFER_BY
    """The ratio of the times that was measured when the solution was made."""

    @property
    def found(self) -> float:
        """The share of intervals that are below 1. An interval above 1 is wrong, and does not count."""
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
    """Returns the title and the table header of a part, as Markdown."""
    columns = (*KINDS[part].COLUMNS, "bar")
    rule = " | ".join(["---", *["---:"] * (len(columns) - 2), "---"])
    return f"### {TITLES[part]}\n\n| {' | '.join(columns)} |\n| {rule} |"


def line(row: Row) -> str:
    """Returns a row as Markdown."""
    return f"| {' | '.join([*row.cells, 'met' if row.met else '**missed**'])} |"


def read_row(part: str, data: Mapping[str, Any]) -> Row:
    """Returns a row of a part from the fields of `dataclasses.asdict`. Raises TypeError if they do not fit."""
    return KINDS[part](**data)


def middle(samples: Sequence[float]) -> float:
    """Returns the median; NaN without samples, which misses every bar."""
    return statistics.median(samples) if samples else math.nan


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Returns the differences call by call. Raises ValueError if the lengths differ."""
    return [our - their for our, their in zip(ours, theirs, strict=True)]


def spin_for(wanted_us: float, none_us: float, some_us: float, some_cycles: int) -> int:
    """Returns the cycles with which a spin kernel adds a wanted time to some work.

    `none_us` and `some_us` are the times that 0 and `some_cycles` cycles added. Raises ValueError if the kernel without
    cycles adds too much, or if the cycles add nothing.
    """
    if not none_us < min(wanted_us, some_us):
        raise ValueError(f"no spin adds {wanted_us:.3g} µs: {none_us:.3g} µs with 0 cycles, {some_us:.3g} µs with "
                         f"{some_cycles}")
    return round(some_cycles * (wanted_us - none_us) / (some_us - none_us))
