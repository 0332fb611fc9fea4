"""Collects the times of forward and backward apart, in calls that have both.

They are information. What counts is the time of both together: a forward could do work of the backward, and the split
comes from the solution's own process, where no other clock checks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from inlinebench.results.times import PASSES, Baseline, PassTimes, Spread
from inlinebench.timing.call import Sample
from inlinebench.timing.statistics import median_interval, paired_ratios, quartiles, widen_by_clock

Split = tuple[float, ...]
"""The times of the passes of one call in ms, in order."""


class Passes:
    """The times of the passes of reference, solution and baselines in ms, in the order of the calls.

    Args:
        least_ms: the lower bound of every time in ms, which keeps ratios finite.
    """

    def __init__(self, least_ms: float) -> None:
        self._least_ms = least_ms
        self._references: list[Split] = []
        self._solutions: list[Split] = []
        self._baselines: dict[str, list[Split]] = {}

    def add_reference(self, sample: Sample, overhead_ms: float, counted: bool) -> None:
        """Adds a call of the reference. Only the last warm-up call is kept, as for the times of both passes."""
        if not counted:
            self._references.clear()
            self._baselines.clear()
        self._references += self._split(sample, overhead_ms)

    def add_solution(self, sample: Sample, overhead_ms: float) -> None:
        """Adds a counted call of the solution."""
        self._solutions += self._split(sample, overhead_ms)

    def add_baselines(self, found: Mapping[str, Sample], overhead_ms: float) -> None:
        """Adds calls of baselines, by name."""
        for name, sample in found.items():
            self._baselines.setdefault(name, []).extend(self._split(sample, overhead_ms))

    def summary(self, usable: Sequence[bool]) -> tuple[PassTimes, ...]:
        """Returns the times of both passes over the usable calls. Empty for calls without a backward."""
        if not any(usable) or len(self._solutions) != len(usable) or len(self._references) != len(usable) + 1:
            return ()
        return tuple(self._summary(number, usable) for number in range(len(PASSES)))

    def _summary(self, number: int, usable: Sequence[bool]) -> PassTimes:
        solutions = [split[number] if use else None
                     for split, use in zip(self._solutions, usable, strict=True)]
        used = [ms for ms in solutions if ms is not None]
        references = [split[number] for split in self._references]
        baselines = {name: [split[number] for split in splits] for name, splits in self._baselines.items()
                     if len(splits) == len(references)}
        return PassTimes(
            PASSES[number], _spread(references[1:]), _spread(used), _speedup(references, solutions, used),
            tuple(Baseline(name, _spread(times[1:]), _speedup(times, solutions, used))
                  for name, times in baselines.items()))

    def _split(self, sample: Sample, overhead_ms: float) -> list[Split]:
        """Returns the times of both passes, each without the clock's overhead; nothing for a call with one pass."""
        if sample.forward_ms is None:
            return []
        times = sample.forward_ms, sample.device_ms - sample.forward_ms
        return [tuple(max(self._least_ms, ms - overhead_ms) for ms in times)]


def moved(passes: Sequence[PassTimes]) -> list[str]:
    """Returns a flag if one pass is slower than the reference's and the other one is faster."""
    for slow, fast in zip(passes, passes[::-1], strict=True):
        if slow.speedup.high < 1 < fast.speedup.low:
            return [f"{slow.name} takes longer than the reference's, {slow.solution_ms.median:.4g} ms and "
                    f"{slow.reference_ms.median:.4g} ms, and {fast.name} is faster: work may have moved from one pass "
                    "to the other; the time of both together counts"]
    return []


def _speedup(others: Sequence[float], solutions: Sequence[float | None], used: Sequence[float]) -> Spread:
    low, middle, high = widen_by_clock(
        median_interval(paired_ratios(others, solutions)), median(others), median(used))
    return Spread(middle, low, high)


def _spread(samples: Sequence[float]) -> Spread:
    low, middle, high = quartiles(samples)
    return Spread(middle, low, high, len(samples))
