"""The records of a solution's times, which are a part of its result. Records reject contradictions with ValueError."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PASSES = ("forward", "backward")
"""The passes of a call with a backward, in order."""
REPEATABILITY = 5e-4
"""Relative difference of the same work between processes. Over 30 evaluations of references against themselves on H100s
(2.6 to 2.8 ms) the medians were between 0.9989 and 1.0006, and narrower intervals missed 1 by up to 0.02 %."""
MEMORY, COMPUTE = "memory", "compute"
"""The two values of `Roofline.binds`."""


@dataclass(frozen=True)
class Spread:
    """The median of a repeated measurement, with an interval around it.

    The unit is that of the quantity: milliseconds for times, MHz for clocks, a ratio for speedups. The interval is

    - for times, the quartiles;
    - for clocks, the 5 % and 95 % quantiles;
    - for speedups, the 95 % bootstrap interval of the median, widened by the error of the clock and by the variation
      between processes.

    Raises ValueError unless `low <= median <= high`.
    """

    median: float
    """The median of the measurements."""
    low: float
    """The lower end of the interval."""
    high: float
    """The upper end of the interval."""
    calls: int | None = None
    """The number of measurements, where it is known."""

    def __post_init__(self) -> None:
        if not self.low <= self.median <= self.high:
            raise ValueError(f"the median {self.median} is not between {self.low} and {self.high}")


@dataclass(frozen=True)
class Roofline:
    """The least time that the device needs for a call: the larger of a memory term and a compute term.

    Raises ValueError for negative counts, for terms that are not finite times, and if `binds` contradicts the terms.
    """

    bytes: int
    """Bytes that must be read and written."""
    flops: int
    """Floating-point operations."""
    memory_ms: float
    """The time to move the bytes, in ms."""
    compute_ms: float
    """The time to execute the operations, in ms."""
    binds: str
    """The larger term, `memory` or `compute`. It is a field, not a property, so that the JSON contains it."""

    def __post_init__(self) -> None:
        if self.bytes < 0 or self.flops < 0:
            raise ValueError(f"the counts of work are negative: {self.bytes} bytes, {self.flops} operations")
        for term in (self.memory_ms, self.compute_ms):
            if not 0 <= term < math.inf:
                raise ValueError(f"no time is negative, infinite or NaN: {term} ms")
        if self.binds != binding(self.memory_ms, self.compute_ms):
            raise ValueError(f"{self.memory_ms} ms of memory and {self.compute_ms} ms of compute: not {self.binds}")

    @property
    def ms(self) -> float:
        """The roofline time in ms: the larger term."""
        return max(self.memory_ms, self.compute_ms)


def binding(memory_ms: float, compute_ms: float) -> str:
    """Returns which of the two terms of a roofline time is larger: `MEMORY` (also if they are equal) or `COMPUTE`."""
    return COMPUTE if compute_ms > memory_ms else MEMORY


@dataclass(frozen=True)
class GpuState:
    """The state of a GPU over the counted calls, sampled after each call.

    Throttled samples are dropped, unless half of all samples, or of those of a kind of inputs, were throttled. Clocks
    and power are over the samples that are left. Raises ValueError if all samples were dropped, or some without a
    reason in `throttled`.
    """

    sm_mhz: Spread
    """The SM clock in MHz."""
    memory_mhz: Spread
    """The memory clock in MHz."""
    temperature_c: float
    """The highest temperature of all samples, in °C."""
    samples: int
    """The number of samples, dropped ones included."""
    dropped: int = 0
    """The number of dropped samples. The times of these calls are not used either."""
    throttled: tuple[str, ...] = ()
    """The reasons for throttling in any sample, such as `software power cap`."""
    power_w: float | None = None
    """The median power in W; absent where the GPU does not report it."""
    other_processes: int | None = None
    """The number of other processes that computed on the GPU; absent where it cannot be known."""

    def __post_init__(self) -> None:
        if not 0 <= self.dropped < self.samples:
            raise ValueError(f"{self.dropped} of {self.samples} samples can't have been dropped")
        if self.dropped and not self.throttled:
            raise ValueError("samples were dropped without a reason")


@dataclass(frozen=True)
class Baseline:
    """The time of another implementation, and the solution's speedup over it."""

    name: str
    """The name as given to `--baseline`: `compile`, `compile-max` or `solution:NAME`; or `library`, for the library
    solution of the problem."""
    ms: Spread
    """Device time of the baseline, in ms. `torch.compile`'s is measured on the solution's inputs, another solution's in
    that solution's own evaluation."""
    speedup: Spread
    """Time of the baseline over time of the solution. For `torch.compile` it is the median of paired ratios, as for the
    reference. For another solution it is the ratio of both speedups over the reference, and the interval covers both
    of theirs."""


@dataclass(frozen=True)
class InputKind:
    """The times on one kind of inputs."""

    inputs: str
    """`as drawn`, or the variant of the drawn inputs."""
    solution_ms: Spread
    """Device time of the solution, in ms."""
    speedup: Spread
    """Reference over solution, each pair on the same inputs."""


@dataclass(frozen=True)
class PassTimes:
    """The times of one pass of calls with a backward. They do not decide anything: a forward could do work of the
    backward, and the split comes from the solution's own process."""

    name: str
    """The pass: `forward` or `backward`."""
    reference_ms: Spread
    """Device time of the reference's pass, in ms."""
    solution_ms: Spread
    """Device time of the solution's pass, in ms."""
    speedup: Spread
    """Median of the paired ratios, reference over solution."""
    baselines: tuple[Baseline, ...] = ()
    """The same for each baseline that `torch.compile` makes."""


def check_passes(names: Sequence[str]) -> None:
    """Raises ValueError unless there are no passes, or those of `PASSES`."""
    if names and tuple(names) != PASSES:
        raise ValueError(f"these are not the passes of a call: {list(names)}")


@dataclass(frozen=True)
class Timing:
    """Times of a solution that passed.

    On a GPU, device time starts with a flushed L2 cache and excludes launch gaps, unless a flag says otherwise. Raises
    ValueError for passes that are not `forward` and `backward`.
    """

    reference_ms: Spread
    """Device time of the reference, in ms. If it waits for the device and was slower beside the solution's process, the
    times from after that process count, as a flag says."""
    solution_ms: Spread
    """Device time of the solution, in ms."""
    speedup: Spread
    """Median of the paired ratios, reference over solution. If the reference's times from after the solution's process
    count, it is the ratio of the medians, and the interval covers all of these times."""
    wall_ms: Spread | None = None
    """Wall time of one more call in a Python loop that does not wait for the device, in ms, by the judge's host. None
    where it is not measured, and if there are buffers for a single call only."""
    first_call_ms: float | None = None
    """Time of the solution's first call in its process, in ms, by the judge's host, from the request to the reply. It
    includes what only a first call does, such as loading kernels, allocations and compilers at run time, except builds
    of the harness. It also includes the exchange of messages, some ms."""
    load_ms: float | None = None
    """Time to import and construct the solution, copy the weights and move it to the device, in ms, by the judge's
    host, without builds. Nearly 0 at a workload of a set that shares the model of an earlier one."""
    judge_ms: Spread | None = None
    """Time of a call by the judge's own clock, in ms, from the fastest to the slowest kind of inputs. It is less
    precise than `solution_ms`, which it replaces if it is too long for it. Absent where calls are not held (the
    CPU)."""
    baselines: tuple[Baseline, ...] = ()
    """The library solution of the problem and the baselines that `--baseline` names, if they have times."""
    inputs: tuple[InputKind, ...] = ()
    """The times by kind of inputs, if the speedup depends on them. The first one decides: `reference_ms`,
    `solution_ms`, `speedup` and the baselines are those of its calls."""
    passes: tuple[PassTimes, ...] = ()
    """The times of forward and backward apart, in the same calls; empty for calls without a backward, and where other
    times replace those of the calls, as a flag says."""
    roofline: Roofline | None = None
    """The least time that the device needs for a call; absent where it is not known."""
    empty_ms: float | None = None
    """Time that the timer shows for an empty call, in ms."""
    reference_overhead_ms: float | None = None
    """Overhead of timer and launch that was subtracted from each time of the reference, in ms."""
    solution_overhead_ms: float | None = None
    """The same for the solution, measured in the candidate's process."""
    stopped_by: str | None = None
    """The stopping criterion that ended the measurement: `precision reached`, `noise settled`, `at_least
    decided` (the interval was cut short: it need not be narrower than it takes to decide), `time budget` or `all calls
    made`."""
    gpu: GpuState | None = None
    """The state of the GPU during the calls; absent on the CPU and where NVML is not available."""
    gpu_unknown: str | None = None
    """Why the state of the GPU is not known."""
    flags: tuple[str, ...] = ()
    """Warnings that make these times less certain, one sentence each."""

    def __post_init__(self) -> None:
        check_passes([each.name for each in self.passes])


def ratio_of(old: Spread | None, new: Spread | None) -> Spread | None:
    """Returns the new speedup over the old one, with an interval that covers those of both; None if one is unknown."""
    if old is None or new is None or old.low <= 0:
        return None
    return Spread(new.median / old.median, new.low / old.high, new.high / old.low)


def mean_speedup(speedups: Sequence[tuple[Spread, float]]) -> Spread | None:
    """Returns the weighted geometric mean of speedups, each with its weight, with a 95 % interval.

    The interval is that of the delta method for the logarithms (Casella and Berger 2002, section 5.5.4): the workloads'
    errors are independent, so their halves of the intervals add up in quadrature, above and below the median apart.
    `REPEATABILITY`, which is part of each half, is common to all workloads of a process, so it is not averaged out: it
    is taken out of the halves, and added once. `benchmarks/set_intervals.py` measures the coverage.
    Returns None without speedups, or if one of them is not positive.
    """
    if not speedups or any(spread.low <= 0 or spread.high == math.inf for spread, _ in speedups):
        return None
    whole = math.fsum(weight for _, weight in speedups)

    def half(errors: Sequence[float]) -> float:
        own = (weight / whole * max(0.0, error - REPEATABILITY)
               for error, (_, weight) in zip(errors, speedups, strict=True))
        return math.hypot(*own, REPEATABILITY)

    mean = math.fsum(weight / whole * math.log(spread.median) for spread, weight in speedups)
    below = half([math.log(spread.median / spread.low) for spread, _ in speedups])
    above = half([math.log(spread.high / spread.median) for spread, _ in speedups])
    return Spread(math.exp(mean), math.exp(mean - below), math.exp(mean + above))
