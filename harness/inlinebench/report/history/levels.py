"""Finds the runs between which the level of a time changed. All functions are pure, and all times are logarithms.

The logarithm of a solution's time in a run is taken as the sum of its level, a factor of the run that all problems
share (another GPU of the same model, its clock), and noise. The last runs, four to twelve of them, are a new level if
all of this holds for them and the earlier runs of the level:

1. their medians differ by `LEAST` or more, without the factors of the runs;
2. the difference is over `LIMIT` times its standard error, which follows from the noise;
3. it is over `LIMIT` times the spread of what the references did between the same runs. With too few references, it is
   `LEAST_ALONE` or more, also in the times as measured: otherwise a reference changed, or the machine;
4. more than three quarters of the runs on each side lie on their side of the middle between both medians. Of four runs
   these are all, so three disturbed ones in succession are no change.

Nobody edits the references between two runs, so they are the controls: they show the factor of a run (the median of
their ratios to their earlier times), and how differently problems take to another GPU or version (their spread). A run
is judged by itself and earlier ones only, so what a report said stays when runs are added.

This is a two-sample test in a sequential scheme as that of Page (Continuous inspection schemes, Biometrika 1954), with
an error that is at least as large as the controls' (Efron, Large-scale simultaneous hypothesis testing, JASA 2004). The
permutation test of E-divisive means (Matteson and James, JASA 2014), which Daly et al. use for the same purpose (ICPE
2020), cannot decide this early at this rate of false alarms: four runs among twenty have only 4,845 places.
`benchmarks/history.py` measures the false alarms and how soon changes are found.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from statistics import median, quantiles

SHORTEST = 4
"""The fewest runs of a level."""
LONGEST = 12
"""The most runs that are compared with the earlier ones at a level."""
LEAST = math.log(1.015)
"""The least change. Smaller ones are not reported."""
LEAST_ALONE = math.log(1.03)
"""The least change where too few references tell what another machine does to each problem."""
LIMIT = 5.0
"""How many standard errors a change exceeds. A month of daily runs of 33 problems makes some 2,000 comparisons, each
with a chance of 6e-7 beyond five standard errors."""
FEWEST_CONTROLS = 8
"""The fewest references whose spread means something."""
_OF_A_MEDIAN = math.sqrt(math.pi / 2)
"""The standard error of a median over that of a mean, for normal noise."""
_OF_DEVIATIONS = 1.4826
"""The standard deviation over the median absolute deviation, for normal noise."""
_OF_DECILES = 2.563
"""The distance of the first and the last decile over the standard deviation, for normal noise."""
_ERROR_OF_DECILES = 0.88
"""The standard error of that distance, as a share of it and for one value; it falls with the root of their number."""

LogTimes = Mapping[int, float]
"""The logarithms of a kernel's times by the number of the run, in order of the runs."""


@dataclass(frozen=True)
class Timeline:
    """The times of one solution over the runs. Raises ValueError if the fields differ in length."""

    runs: tuple[int, ...]
    """The numbers of the runs that have a time, ascending."""
    measured: tuple[float, ...]
    """The logarithms of the times."""
    corrected: tuple[float, ...]
    """The same without the factors of the runs."""
    errors: tuple[float, ...]
    """The standard errors of the times within their runs, as shares of the times. The noise between runs is no less."""

    def __post_init__(self) -> None:
        if not len(self.runs) == len(self.measured) == len(self.corrected) == len(self.errors):
            raise ValueError("each run has one time")


def run_factors(references: Sequence[LogTimes], runs: int) -> list[float]:
    """Returns the logarithm of the factor of each run: the median over the references of how much longer they took than
    usual, which is the median of their earlier times without the factors of those runs. The first run has 0."""
    factors: list[float] = []
    earlier: list[list[float]] = [[] for _ in references]
    for run in range(runs):
        longer = [times[run] - median(known) for times, known in zip(references, earlier, strict=True)
                  if known and run in times]
        factors.append(median(longer) if longer else 0.0)
        for times, known in zip(references, earlier, strict=True):
            if run in times:
                known.append(times[run] - factors[run])
    return factors


def noise(values: Sequence[float]) -> float:
    """Returns the standard deviation of normal noise from the differences of successive values, which a few changes of
    the level and disturbed values do not affect. 0 for fewer than two values."""
    steps = [abs(after - before) for before, after in pairwise(values)]
    return median(steps) * _OF_DEVIATIONS / math.sqrt(2) if steps else 0.0


def level_starts(timelines: Sequence[Timeline], controls: Sequence[LogTimes]) -> list[list[int]]:
    """Returns for each timeline the positions in it at which a level starts; the first one is 0.

    `controls` are the times of the references without the factors of the runs.
    """
    spread = cache(partial(control_spread, controls))
    starts = [[0] for _ in timelines]
    ends = [0] * len(timelines)
    for run in sorted({run for each in timelines for run in each.runs}):
        here = [at for at, each in enumerate(timelines) if ends[at] < len(each.runs) and each.runs[ends[at]] == run]
        for at in here:
            ends[at] += 1
        noises = [noise(each.corrected[:end]) for each, end in zip(timelines, ends, strict=True)]
        usual = median(known) if (known := [each for each, end in zip(noises, ends, strict=True) if end > 1]) else 0.0
        for at in here:
            deviation = max(noises[at], usual, median(timelines[at].errors[: ends[at]]))
            found = _new_level(timelines[at], starts[at][-1], ends[at], deviation, spread)
            if found is not None:
                starts[at].append(found)
    return starts


def _new_level(
    each: Timeline, start: int, end: int, deviation: float, spread: Callable[[int, int, int], float | None]
) -> int | None:
    """Returns where a new level starts, if the last runs before `end` are not at the level from `start` on.

    The place is that with the least sum of distances from the medians of both sides.
    """
    latest = end - SHORTEST
    for split in range(latest, max(start + SHORTEST, end - LONGEST) - 1, -1):
        if _differs(each.corrected, start, split, end, deviation):
            step, measured = (_step(values, start, split, end) for values in (each.corrected, each.measured))
            if _is_its_own(step, measured, spread(each.runs[start], each.runs[split], each.runs[end - 1])):
                return min(range(start + SHORTEST, latest + 1), key=lambda at: (
                    _deviations(each.corrected[start:at]) + _deviations(each.corrected[at:end])))
    return None


def _is_its_own(step: float, measured: float, controls: float | None) -> bool:
    """Whether a step is the solution's by rule 3: not that of the machine, the versions or the references."""
    if controls is None:
        return min(abs(step), abs(measured)) >= LEAST_ALONE and (step > 0) == (measured > 0)
    return abs(step) > LIMIT * controls


def _deviations(values: Sequence[float]) -> float:
    """Returns the sum of the distances from the median."""
    middle = median(values)
    return sum(abs(value - middle) for value in values)


def _differs(values: Sequence[float], start: int, split: int, end: int, deviation: float) -> bool:
    """Whether the times before and after a split differ by the rules 1, 2 and 4."""
    step = _step(values, start, split, end)
    if abs(step) < LEAST:
        return False
    before, after = sorted(values[start:split]), sorted(values[split:end])
    middle = (median(before) + median(after)) / 2
    low, high = (before, after) if step > 0 else (after, before)
    apart = (bisect_left(low, middle) > 0.75 * len(low)
             and len(high) - bisect_right(high, middle) > 0.75 * len(high))
    return apart and abs(step) > LIMIT * deviation * _error(len(before), len(after))


def _step(values: Sequence[float], start: int, split: int, end: int) -> float:
    return median(values[split:end]) - median(values[start:split])


def _error(before: int, after: int) -> float:
    """Returns the standard error of the difference of the medians of so many values, for noise of 1."""
    return _OF_A_MEDIAN * math.sqrt(1 / before + 1 / after)


def control_spread(controls: Sequence[LogTimes], first: int, split: int, last: int) -> float | None:
    """Returns the standard deviation of the controls' steps from the runs from `first` to before `split` to those from
    `split` to `last`, by its upper limit: twice its own standard error is added. None for too few controls."""
    steps = []
    for times in controls:
        before = [time for run, time in times.items() if first <= run < split]
        after = [time for run, time in times.items() if split <= run <= last]
        if min(len(before), len(after)) >= SHORTEST:
            steps.append(median(after) - median(before))
    if len(steps) < FEWEST_CONTROLS:
        return None
    tenths = quantiles(steps, n=10)
    return (tenths[-1] - tenths[0]) / _OF_DECILES * (1 + 2 * _ERROR_OF_DECILES / math.sqrt(len(steps)))
