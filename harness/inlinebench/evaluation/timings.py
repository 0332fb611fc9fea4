"""The times of one evaluation, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from inlinebench.records.result import Baseline, GpuState, Roofline, Spread, Timing
from inlinebench.timing.call import Sample
from inlinebench.timing.gpu_state import GpuSample, busy, drops, summarize
from inlinebench.timing.gpu_state import flags as gpu_flags
from inlinebench.timing.overhead import Overhead
from inlinebench.timing.statistics import median_interval, paired_ratios, quartiles, widen_by_clock

LEAST_MS = 1e-4
"""No call takes less than a tenth of a microsecond, and a ratio has to be one."""
VARIANT_NOISE = 0.05
"""Medians of plain and changed inputs further apart than this (as a share) are worth a flag."""
FEWEST_TO_COMPARE = 8
OUTSIDE_TOLERANCE = 0.10
LAUNCH_BOUND = 2.0
"""A call that takes this many times longer in a loop than on the device mostly waits for the host."""
SLOWDOWN, SLOWDOWN_SLACK_MS = 0.10, 0.005
"""What clocks and temperature may do to a reference, as a share, and what little calls scatter by."""


class Timings:
    """Reference and solution times in ms, in the order of the calls.

    From each time its process's `overhead` is taken off, where there is one.
    """

    def __init__(self, overhead: Overhead | None = None) -> None:
        self._overhead = overhead
        self._references: list[float] = []
        self._solutions: list[float | None] = []
        self._variants: list[str] = []
        self._reference_ran = False
        self._walls: list[float] = []
        self._baselines: dict[str, list[float]] = {}
        self._states: list[GpuSample | None] = []
        self.gpu_unknown: str | None = None
        self.other_processes: int | None = None
        self.stopped_by = ""
        self.roofline: Roofline | None = None
        self.least_ms = 0.0
        """What moving the compulsory bytes takes but for those that L2 can keep; a shorter time is worth a flag."""
        self.outside_ms: float | None = None
        """What a call took by the judge's own clock, if that is to count where it is more."""

    def of_reference(self, sample: Sample) -> float:
        """What a call of the reference, or of a baseline, took in ms, without what the clock adds to it."""
        return max(LEAST_MS, sample.device_ms - (self._overhead.of_reference_ms if self._overhead else 0.0))

    def of_solution(self, sample: Sample) -> float:
        """The same of a call of the solution."""
        return max(LEAST_MS, sample.device_ms - (self._overhead.of_solution_ms if self._overhead else 0.0))

    @property
    def warm(self) -> bool:
        """Whether the reference has run before, so that its kernels are loaded."""
        return self._reference_ran

    def add_reference(self, sample: Sample, counted: bool) -> None:
        """A reference call; of the warm-up calls only the last is kept, as the neighbour of the first counted one."""
        self._reference_ran = True
        if not counted:
            self._references.clear()
            self._baselines.clear()
        self._references.append(self.of_reference(sample))

    def add_solution(
        self, sample: Sample, synchronises: bool, variant: str, state: GpuSample | None = None
    ) -> None:
        """A counted call with the GPU's state after it; its time is used if it was held, or if the solution can't be,
        and if the GPU wasn't throttled, unless it was most of the time."""
        usable = (sample.blocked or synchronises) and sample.device_ms > 0
        self._solutions.append(self.of_solution(sample) if usable else None)
        self._variants.append(variant)
        self._states.append(state)

    def add_baselines(self, found: Mapping[str, Sample]) -> None:
        """Calls of baselines on the inputs of the last reference call, by name."""
        for name, sample in found.items():
            self._baselines.setdefault(name, []).append(self.of_reference(sample))

    def add_wall(self, ms: float) -> None:
        """What a call took in a loop."""
        self._walls.append(ms)

    def solution_ms(self) -> float | None:
        """The solution's median time so far; None where no call had a usable one."""
        used = self._used()
        return median(used) if used else None

    def ratios(self) -> list[float]:
        """The paired speedups so far."""
        return paired_ratios(self._references, self._usable())

    def _used(self) -> list[float]:
        return [time for time in self._usable() if time is not None]

    def _usable(self) -> list[float | None]:
        """The solution's times, without those of a GPU that was throttled now and then."""
        known = [state for state in self._states if state is not None]
        if not drops(known):
            return self._solutions
        return [None if state is not None and state.throttled else time
                for time, state in zip(self._solutions, self._states, strict=True)]

    def summary(self, reference_synchronises: bool, solution_synchronises: bool) -> Timing | None:
        """The record; None where no call had a usable time."""
        used = self._used()
        if not used or len(self._references) != len(self._solutions) + 1:
            return None
        interval = median_interval(self.ratios())
        low, middle, high = widen_by_clock(interval, median(self._references), median(used))
        flags = []
        if reference_synchronises:
            flags.append("the reference waits for the device: launches are part of its time")
        if solution_synchronises:
            flags.append("the solution waits for the device: launches are part of its time")
        if self._overhead is not None and self._overhead.doubtful:
            flags.append("what the solution's process adds to a call couldn't be measured: the judge's was taken off")
        flags += self._variant_flags()
        if self.least_ms > median(used):
            flags.append(f"faster than its bytes can all be moved ({self.least_ms:.4g} ms): if the problem needs "
                         "fewer, its work() can say so")
        gpu = self._gpu()
        flags += [] if gpu is None else gpu_flags(gpu)
        wall = _spread(self._walls) if self._walls else None
        if wall and wall.median > LAUNCH_BOUND * median(used):
            flags.append(f"launch-bound: {wall.median:.4g} ms a call in a loop in Python, {median(used):.4g} ms on the "
                         "device")
        solution, speedup = _spread(used), Spread(middle, low, high)
        if self.outside_ms is not None and self.outside_ms > solution.median * (1 + OUTSIDE_TOLERANCE):
            factor = self.outside_ms / solution.median
            flags.append(f"timed by the judge's clock: {solution.median:.4g} ms by its own")
            solution, speedup = _scaled(solution, factor), _scaled(speedup, 1 / factor)
        found = self._overhead
        empty, of_reference, of_solution = (
            (found.empty_ms, found.of_reference_ms, found.of_solution_ms) if found else (None, None, None)
        )
        return Timing(
            _spread(self._references[1:]), solution, speedup, wall, self._compare(used), self.roofline, empty,
            of_reference, of_solution, self.stopped_by, gpu, None if gpu else self.gpu_unknown, tuple(flags)
        )

    def in_doubt(self, reason: str) -> str:
        """A reason that rests on times, with what may have made them longer than the solution did."""
        non_tensors = busy(self.other_processes)
        return f"{reason}; but {non_tensors}, so try again without" if non_tensors else reason

    def _gpu(self) -> GpuState | None:
        known = [state for state in self._states if state is not None]
        return summarize(known, self.other_processes) if known and len(known) == len(self._states) else None

    def _compare(self, used: list[float]) -> tuple[Baseline, ...]:
        """The baselines that ran beside every call, with paired speedups over them."""
        found = []
        for name, times in self._baselines.items():
            if len(times) == len(self._references):
                interval = median_interval(paired_ratios(times, self._usable()))
                low, middle, high = widen_by_clock(interval, median(times), median(used))
                found.append(Baseline(name, _spread(times[1:]), Spread(middle, low, high)))
        return tuple(found)

    def _variant_flags(self) -> list[str]:
        groups: dict[bool, list[float]] = {True: [], False: []}
        for time, variant in zip(self._usable(), self._variants, strict=True):
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
