"""The times of one evaluation, and what they add up to."""

from __future__ import annotations

from statistics import median

from harness.result import Spread, Timing
from harness.timing.call import Sample
from harness.timing.statistics import median_interval, paired_ratios, quartiles, widen_by_clock

VARIANT_NOISE = 0.05
"""Medians of plain and changed inputs further apart than this (as a share) are worth a flag."""
FEWEST_TO_COMPARE = 8
OUTSIDE_TOLERANCE = 0.10
SLOWDOWN, SLOWDOWN_SLACK_MS = 0.10, 0.005
"""What clocks and temperature may do to a reference, as a share, and what little calls scatter by."""


class Timings:
    """Reference and solution times in ms, in the order of the calls."""

    def __init__(self) -> None:
        self._references: list[float] = []
        self._solutions: list[float | None] = []
        self._variants: list[str] = []
        self._reference_ran = False
        self.outside_ms: float | None = None
        """What a call took by the judge's own clock, if that is to count where it is more."""

    @property
    def warm(self) -> bool:
        """Whether the reference has run before, so that its kernels are loaded."""
        return self._reference_ran

    def add_reference(self, sample: Sample, counted: bool) -> None:
        """A reference call; of the warm-up calls only the last is kept, as the neighbour of the first counted one."""
        self._reference_ran = True
        if not counted:
            self._references.clear()
        self._references.append(sample.device_ms)

    def add_solution(self, sample: Sample, synchronises: bool, variant: str) -> None:
        """A counted call; its time is used if it was held, or if the solution can't be held."""
        usable = (sample.held or synchronises) and sample.device_ms > 0
        self._solutions.append(sample.device_ms if usable else None)
        self._variants.append(variant)

    def summary(self, reference_synchronises: bool, solution_synchronises: bool) -> Timing | None:
        """The record; None where no call had a usable time."""
        used = [time for time in self._solutions if time is not None]
        if not used or len(self._references) != len(self._solutions) + 1:
            return None
        interval = median_interval(paired_ratios(self._references, self._solutions))
        low, middle, high = widen_by_clock(interval, median(self._references), median(used))
        flags = []
        if reference_synchronises:
            flags.append("the reference waits for the device: launches are part of its time")
        if solution_synchronises:
            flags.append("the solution waits for the device: launches are part of its time")
        flags += self._variant_flags()
        solution, speedup = _spread(used), Spread(middle, low, high)
        if self.outside_ms is not None and self.outside_ms > solution.median * (1 + OUTSIDE_TOLERANCE):
            factor = self.outside_ms / solution.median
            flags.append(f"timed by the judge's clock: {solution.median:.4g} ms by its own")
            solution, speedup = _scaled(solution, factor), _scaled(speedup, 1 / factor)
        return Timing(_spread(self._references[1:]), solution, speedup, flags=tuple(flags))

    def _variant_flags(self) -> list[str]:
        groups: dict[bool, list[float]] = {True: [], False: []}
        for time, variant in zip(self._solutions, self._variants, strict=True):
            if time is not None:
                groups[variant == "as drawn"].append(time)
        if min(map(len, groups.values())) < FEWEST_TO_COMPARE:
            return []
        plain, changed = median(groups[True]), median(groups[False])
        if abs(plain - changed) <= VARIANT_NOISE * max(plain, changed):
            return []
        return [f"the solution's time depends on the values: {plain:.4g} ms as drawn, {changed:.4g} ms on variants"]


def slowed_down(beside_ms: float, alone_ms: float) -> bool:
    """Whether the reference's median time beside a candidate is too long for one that ran undisturbed."""
    return beside_ms > alone_ms * (1 + SLOWDOWN) + SLOWDOWN_SLACK_MS


def _scaled(spread: Spread, factor: float) -> Spread:
    return Spread(spread.median * factor, spread.low * factor, spread.high * factor, spread.calls)


def _spread(samples: list[float]) -> Spread:
    low, middle, high = quartiles(samples)
    return Spread(middle, low, high, len(samples))
