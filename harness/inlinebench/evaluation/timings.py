"""Collects the times of one evaluation and summarizes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from statistics import median
from typing import TypeVar

from inlinebench.devices.cuda.state import GpuSample, busy, dropped, summarize
from inlinebench.devices.cuda.state import flags as gpu_flags
from inlinebench.evaluation.passes import Passes, moved
from inlinebench.results.times import Baseline, GpuState, InputKind, PassTimes, Roofline, Spread, Timing
from inlinebench.timing.call import Sample
from inlinebench.timing.overhead import Overhead
from inlinebench.timing.statistics import (
    FEWEST,
    calls_needed,
    clock_share,
    median_interval,
    paired_ratios,
    quantile,
    quartiles,
    slowest,
    widen_by_clock,
)

Kind = TypeVar("Kind")

LEAST_MS = 1e-4
"""The lower bound of every time in ms. It keeps ratios finite; no call takes less than 0.1 µs."""
LAUNCH_BOUND = 2.0
"""A solution is launch-bound if a call in a loop takes more than this many times its time on the device."""
SLOWDOWN, SLOWDOWN_SLACK_MS = 0.05, 0.005
"""How much slower the reference may be next to a candidate: a share for clocks and temperature, and ms for noise."""
FAR_SLOWDOWN, FAR_SLOWDOWN_MS = 0.25, 0.01
"""Beyond this, no disturbance explains that it is slower."""
COMPARED = {0.5: "", 0.75: "the slowest quarter of its calls took at least "}
"""The quantiles of the reference's times that are compared, and how messages name them. A speedup is over neighbouring
calls, so work that slows down some of them can change it without changing the median."""
SPARE = 8
"""How many calls on a kind of inputs may be unusable before it gets no more of them. A tenth of the calls is unusable
by design: that 9 of the first 11 calls of a kind are has a probability of 5e-8."""


class Timings:
    """The times of reference, solution and baselines in ms, in the order of the calls.

    The `overhead` of the process that took a time is subtracted from it, if it is known.
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
        self._alone: Mapping[str, Sequence[float]] = {}
        self._slowed = ""
        self._passes = Passes(LEAST_MS)
        self.kinds: tuple[str, ...] = ()
        """The kinds of inputs on which the solution has to be timed. Empty where no times are reported."""
        self.gpu_unknown: str | None = None
        """Why the GPU's state is unknown."""
        self.other_processes: int | None = None
        """How many other processes computed on the GPU. None if unknown."""
        self.stopped_by = ""
        """The criterion that ended the counted calls."""
        self.roofline: Roofline | None = None
        """The roofline time of the problem."""
        self.least_ms = 0.0
        """The time to move the compulsory bytes, except those that L2 can hold. A shorter time gets a flag."""
        self.measured: Spread | None = None
        """The time of a call in ms by the judge's own clock."""
        self.outside_factor: float | None = None
        """How many times as long as the reported times allow calls take by the judge's own clock, if its time replaces
        the reported one."""

    def of_reference(self, sample: Sample) -> float:
        """Returns the time in ms of a call of the reference or of a baseline, without the clock's overhead."""
        return max(LEAST_MS, sample.device_ms - self._reference_overhead_ms)

    def of_solution(self, sample: Sample) -> float:
        """Returns the time in ms of a call of the solution, without the clock's overhead."""
        return max(LEAST_MS, sample.device_ms - self._solution_overhead_ms)

    @property
    def _reference_overhead_ms(self) -> float:
        return self._overhead.of_reference_ms if self._overhead else 0.0

    @property
    def _solution_overhead_ms(self) -> float:
        return self._overhead.of_solution_ms if self._overhead else 0.0

    @property
    def warm(self) -> bool:
        """Whether the reference has run before, so that its kernels are loaded."""
        return self._reference_ran

    def add_reference(self, sample: Sample, counted: bool) -> None:
        """Adds a call of the reference.

        Only the last warm-up call is kept. It is the neighbour of the solution's first counted call.
        """
        self._reference_ran = True
        if not counted:
            self._references.clear()
            self._baselines.clear()
        self._references.append(self.of_reference(sample))
        self._passes.add_reference(sample, self._reference_overhead_ms, counted)

    def add_solution(
        self, sample: Sample, synchronises: bool, variant: str, state: GpuSample | None = None
    ) -> None:
        """Adds a counted call of the solution, with the GPU's state after it.

        Its time is used if the call was queued behind the blocking kernel, or if the solution synchronises and cannot
        be. Times of a throttled GPU are dropped later, unless the GPU was throttled most of the time.
        """
        usable = (sample.blocked or synchronises) and sample.device_ms > 0
        self._solutions.append(self.of_solution(sample) if usable else None)
        self._variants.append(variant)
        self._states.append(state)
        self._passes.add_solution(sample, self._solution_overhead_ms)

    def add_baselines(self, found: Mapping[str, Sample]) -> None:
        """Adds calls of baselines, by name, on the inputs of the last reference call."""
        for name, sample in found.items():
            self._baselines.setdefault(name, []).append(self.of_reference(sample))
        self._passes.add_baselines(found, self._reference_overhead_ms)

    def add_wall(self, ms: float) -> None:
        """Adds the wall time of a call in a loop, in ms."""
        self._walls.append(ms)

    def solution_ms(self) -> float | None:
        """Returns the solution's median time so far in ms, or None without a usable time.

        It is that of the kind of inputs with the lowest speedups, if they depend on the inputs.
        """
        _, used, _ = self._counted()
        return median(used) if used else None

    def allowed_ms(self, kinds: Iterable[str], alone: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Returns how long in ms a held call may take on each of these kinds of inputs, if the reported times are true.

        That is the reported time, or the reference's on these inputs over the speedup, if that is longer. The times
        that the solution's process reported on one kind say nothing: they can be long enough for a held call, and
        scatter so that this kind does not decide. `alone` has times of the reference in ms from after the candidate,
        which count where it was slower beside it. Returns nothing without a usable time.
        """
        deciding, used, ratios = self._counted()
        if not used:
            return {}
        speedup, found = self._speedup(ratios, used, deciding).median, dict[str, float]()
        for kind in kinds:
            slowed = kind in alone and self.seems_slowed_down(kind, alone[kind])
            reference = alone[kind] if slowed else self._of_reference(kind) or self._of_reference(None)
            found[kind] = max(median(used), median(reference) / speedup)
        return found

    def ratios(self) -> list[float]:
        """Returns the paired speedups so far."""
        return paired_ratios(self._references, self._usable())

    def margin(self) -> float:
        """Returns the share by which all speedups so far may be wrong because of the clock and the processes."""
        return clock_share(median(self._references), median(self._used()))

    def slowest_inputs(self) -> str | None:
        """Returns the kind of inputs with the lowest speedups, or None if they do not depend on the inputs."""
        return slowest({kind: ratios for kind, (_, ratios) in self._by_inputs().items()})

    def missing(self, order: Iterator[Kind]) -> Iterator[Kind]:
        """Yields the kinds of inputs to call next, until each has the usable times that it needs to be judged.

        `order` is the secret order of the kinds: what lacks no times is left out of it. A call has to be added between
        two steps. The number of calls is bounded, so a kind may lack usable times at the end; a flag then says so.
        """
        while lacking := self._lacking():
            yield next(kind for kind in order if str(kind) in lacking)

    def _lacking(self) -> set[str]:
        known, made = self._by_inputs(), Counter(self._variants)
        ratios: dict[str, list[float]] = {kind: known[kind][1] if kind in known else [] for kind in self.kinds}
        return {kind for kind, needed in calls_needed(ratios).items()
                if len(ratios[kind]) < needed and made[kind] < needed + SPARE}

    def seems_slowed_down(self, kind: str, alone: Sequence[float]) -> bool:
        """Whether the reference's times in ms on a kind of inputs seem longer beside the candidate than after it."""
        beside = [time for time, each in zip(self._references[1:], self._variants, strict=True) if each == kind]
        return not beside or slowed_down(beside, alone, SLOWDOWN, SLOWDOWN_SLACK_MS) is not None

    def compare_alone(self, alone: Mapping[str, Sequence[float]], synchronises: bool) -> str:
        """Compares the reference's times in ms from after the candidate, on each kind of inputs, with those beside it.

        If the reference was slower beside the candidate, its times alone replace the others: a candidate cannot have
        changed them. Returns the reason to reject the solution if no disturbance explains it, or "". A reference that
        waits for the device (`synchronises`) is timed on the host, which any other work slows down, so nothing is
        rejected then.
        """
        beside, repeated = self._references[1:], {kind: cycle(times) for kind, times in alone.items()}
        like = [next(repeated[kind]) for kind in self._variants]  # each kind as often as beside the candidate
        if (share := slowed_down(beside, like, SLOWDOWN, SLOWDOWN_SLACK_MS)) is None:
            return ""
        far = slowed_down(beside, like, FAR_SLOWDOWN, FAR_SLOWDOWN_MS)
        share = share if far is None else far
        slowed = (f"{COMPARED[share]}{quantile(beside, share):.4g} ms while the solution's process existed, "
                  f"{quantile(like, share):.4g} ms after it ended")
        if far is not None and not synchronises:
            return self.in_doubt(f"the reference was slowed down: {slowed}")
        self._alone, self._slowed = alone, slowed
        return ""

    def _by_inputs(self) -> dict[str, tuple[list[float], list[float]]]:
        """Returns the times and the speedups for each kind of inputs.

        Each call is paired with the reference's call on the same inputs only, because the reference's time may depend
        on them, too.
        """
        found: dict[str, tuple[list[float], list[float]]] = {}
        for reference, time, variant in zip(self._references[1:], self._usable(), self._variants, strict=True):
            if time is not None:
                times, ratios = found.setdefault(variant, ([], []))
                times.append(time)
                ratios.append(reference / time)
        return found

    def _counted(self) -> tuple[str | None, list[float], list[float]]:
        """Returns the kind of inputs that decides, or None, and the usable times and the speedups that count."""
        if (deciding := self.slowest_inputs()) is not None:
            return deciding, *self._by_inputs()[deciding]
        return None, self._used(), self.ratios()

    def _used(self) -> list[float]:
        return [time for time in self._usable() if time is not None]

    def _usable(self) -> list[float | None]:
        """Returns the solution's times, with None for unusable calls and for calls on an occasionally throttled GPU."""
        return [None if drop else time
                for time, drop in zip(self._solutions, dropped(self._states, self._variants), strict=True)]

    def summary(self, reference_synchronises: bool, solution_synchronises: bool) -> Timing | None:
        """Returns the record of all times, or None if there is no usable time or the evaluation was cut short.

        The arguments are whether the reference and the solution wait for the device themselves.
        """
        if not self._used() or len(self._references) != len(self._solutions) + 1:
            return None
        by_inputs, (deciding, used, ratios) = self._by_inputs(), self._counted()
        reference = _spread(self._of_reference(deciding))
        solution, speedup = _spread(used), self._speedup(ratios, used, deciding)
        flags = []
        if reference_synchronises:
            flags.append("the reference waits for the device: its time includes kernel launches")
        if self._alone:
            flags.append(f"the reference was slower beside the solution: {self._slowed}; the speedup uses the latter")
        if solution_synchronises:
            flags.append("the solution waits for the device: its time includes kernel launches")
        if self._overhead is not None and self._overhead.doubtful:
            flags.append("the clock's overhead in the solution's process could not be measured: the judge's overhead "
                         "was subtracted")
        if deciding is not None:
            others = median([ratio for kind, (_, each) in by_inputs.items() if kind != deciding for ratio in each])
            flags.append(f"the speedup depends on the inputs: the lowest counts ({deciding}), {speedup.median:.3g}; "
                         f"{others:.3g} on the others")
        if few := [kind for kind in self.kinds if len(by_inputs.get(kind, ((), ()))[0]) < FEWEST]:
            flags.append(f"the times do not cover all inputs: too few calls could be timed on inputs {', '.join(few)}")
        if self.least_ms > median(used):
            flags.append(f"faster than its bytes can be moved ({self.least_ms:.4g} ms): if the problem moves fewer "
                         "bytes, define work() in its file")
        gpu = self._gpu()
        flags += [] if gpu is None else gpu_flags(gpu)
        wall = _spread(self._walls) if self._walls else None
        if wall and wall.median > LAUNCH_BOUND * median(used):
            flags.append(f"launch-bound: {wall.median:.4g} ms per call in a Python loop, {median(used):.4g} ms on the "
                         "device")
        if (factor := self.outside_factor) is not None:
            flags.append(f"timed by the judge's clock: the solution's process reported {solution.median:.4g} ms")
            solution, speedup = _scaled(solution, factor), _scaled(speedup, 1 / factor)
        passes = self._split(deciding)
        flags += moved(passes)
        known = self._overhead
        return Timing(
            reference_ms=reference,
            solution_ms=solution,
            speedup=speedup,
            wall_ms=wall,
            judge_ms=self.measured,
            baselines=self._compare(deciding),
            inputs=() if deciding is None else tuple(
                InputKind(kind, _spread(times), self._speedup(ratios, times, kind))
                for kind, (times, ratios) in sorted(by_inputs.items(), key=lambda item: median(item[1][1]))),
            passes=passes,
            roofline=self.roofline,
            empty_ms=known.empty_ms if known else None,
            reference_overhead_ms=known.of_reference_ms if known else None,
            solution_overhead_ms=known.of_solution_ms if known else None,
            stopped_by=self.stopped_by,
            gpu=gpu,
            gpu_unknown=None if gpu else self.gpu_unknown,
            flags=tuple(flags),
        )

    def in_doubt(self, reason: str) -> str:
        """Returns a reason that is based on times. If other processes used the GPU, the reason says so."""
        others = busy(self.other_processes)
        return f"{reason}; but {others}, so try again on an idle GPU" if others else reason

    def _gpu(self) -> GpuState | None:
        known = [state for state in self._states if state is not None]
        if not known or len(known) != len(self._states):
            return None
        return summarize(known, self.other_processes, self._variants)

    def _of_reference(self, kind: str | None) -> list[float]:
        """Returns the reference's times that count, on a kind of inputs, or on all."""
        if self._alone:
            return [time for each, times in self._alone.items() if kind in (None, each) for time in times]
        return [time for each, time in zip(self._variants, self._references[1:], strict=True) if kind in (None, each)]

    def _speedup(self, ratios: list[float], times: list[float], kind: str | None) -> Spread:
        """Returns the speedup on a kind of inputs, or on all, from the paired ratios, or from the solution's times in
        ms if the reference's times alone count."""
        references = self._of_reference(kind)
        interval = speedup_alone(references, times) if self._alone else median_interval(ratios)
        low, middle, high = widen_by_clock(interval, median(references), median(times))
        return Spread(middle, low, high)

    def _split(self, deciding: str | None) -> tuple[PassTimes, ...]:
        """Returns the times of each pass, from the same calls as those of both.

        Empty where other times replace those of the calls: the split is not known of them.
        """
        if self._alone or self.outside_factor is not None:
            return ()
        return self._passes.summary([time is not None for time in self._usable_on(deciding)])

    def _usable_on(self, deciding: str | None) -> list[float | None]:
        """Returns the solution's times, with None for unusable calls and, if one kind of inputs decides, for others."""
        return [None if deciding not in (None, variant) else time
                for time, variant in zip(self._usable(), self._variants, strict=True)]

    def _compare(self, deciding: str | None) -> tuple[Baseline, ...]:
        """Returns the baselines that ran with every call, with the paired speedups over them.

        If one kind of inputs decides, only its calls count.
        """
        found = []
        usable = self._usable_on(deciding)
        used = median([time for time in usable if time is not None])
        for name, times in self._baselines.items():
            if len(times) == len(self._references):
                interval = median_interval(paired_ratios(times, usable))
                low, middle, high = widen_by_clock(interval, median(times), used)
                found.append(Baseline(name, _spread(times[1:]), Spread(middle, low, high)))
        return tuple(found)


def slowed_down(beside: Sequence[float], alone: Sequence[float], share: float, slack_ms: float) -> float | None:
    """Returns the first quantile at which the reference's times in ms beside a candidate are longer than those alone by
    more than a share and ms, or None."""
    return next((each for each in COMPARED
                 if quantile(beside, each) > quantile(alone, each) * (1 + share) + slack_ms), None)


def speedup_alone(alone: Sequence[float], solutions: Sequence[float]) -> tuple[float, float, float]:
    """Returns low end, median and high end of the speedup over a reference that was timed alone. All times are in ms.

    No call of the solution is paired with these few times, and what slows down the host lasts longer than they take. So
    the interval covers all of them, besides the 95 % interval of the solution's median.
    """
    low, middle, high = median_interval(solutions)
    return min(alone) / high, median(alone) / middle, max(alone) / low


def _scaled(spread: Spread, factor: float) -> Spread:
    return Spread(spread.median * factor, spread.low * factor, spread.high * factor, spread.calls)


def _spread(samples: list[float]) -> Spread:
    low, middle, high = quartiles(samples)
    return Spread(middle, low, high, len(samples))
