"""The records of a run's results, and their JSON form: one line for each result.

Records reject contradictions with ValueError. Only a `passed` result has times, and every other result has a reason.
`None` means "not known" or "not applicable"; such a field is absent from the JSON, never null.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

SCHEMA = 2
"""The schema that `to_json` writes."""
_READABLE = (1, 2)
"""Schemas that `from_json` reads."""
_RENAMED = {"floor": "roofline"}
"""Fields of schema 1 that were renamed, with their present names."""
MEMORY, COMPUTE = "memory", "compute"
"""The two values of `Roofline.binds`."""


class Verdict(str, Enum):
    """The outcome of evaluating one solution of one problem at one shape."""

    PASSED = "passed"
    """Every call matched the reference within the tolerance. The only verdict with times."""
    WRONG = "wrong"
    """Values, shape, dtype, NaNs or state differ from the reference's, or inputs were changed."""
    REJECTED = "rejected"
    """The solution cheats, or could not have done the work itself in the time it reports."""
    BUILD_FAILED = "build_failed"
    """The compiler or the linker refused the source, or is missing."""
    CRASHED = "crashed"
    """The candidate raised an exception, was killed by a signal, or exited before it replied."""
    TIMED_OUT = "timed_out"
    """The evaluation or the build exceeded its time limit."""
    OUT_OF_MEMORY = "out_of_memory"
    """The candidate's own allocations failed."""
    INVALID = "invalid"
    """The file is not a solution: it lacks `ModelNew`, fails to import, or its constructor takes other arguments."""
    SKIPPED = "skipped"
    """The solution cannot run here; the reason says why."""
    PROBLEM_ERROR = "problem_error"
    """The problem file or its reference fails."""
    INTERNAL_ERROR = "internal_error"
    """The harness failed; the result says nothing about the solution."""

    def __str__(self) -> str:
        return self.value


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
class Check:
    """How the outputs compared over all calls, warm-up calls included.

    Errors are against the oracle. Each is the largest of any call and any output, and is absent where no elements were
    comparable.
    """

    calls: int
    """The number of compared calls."""
    tolerance: float
    """The tolerance, relative to the output's scale; the largest one if outputs differ in dtype."""
    oracle: str
    """What outputs were compared with: `float64`, or `reference` where no float64 oracle could be computed."""
    weights: str
    """How the reference's weights were transferred to the solution, for example `by name`."""
    worst_error: float | None = None
    """The largest `(|out - y| - a) / (s + |y|)` of any element: the quantity that `tolerance` bounds. The symbols are
    defined in `inlinebench.compare.tolerance`."""
    max_abs_error: float | None = None
    """The largest absolute error of any element, in the output's unit."""
    rel_l2_error: float | None = None
    """The L2 norm of the error over the L2 norm of the oracle."""
    reference_rel_l2_error: float | None = None
    """The same for the reference in its own dtype."""
    notes: tuple[str, ...] = ()
    """Remarks on the comparison, one sentence each."""


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

    Throttled samples are dropped, unless most samples were throttled. Clocks and power are over the samples that are
    left. Raises ValueError if all samples were dropped, or some without a reason in `throttled`.
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
    """The name as given to `--baseline`: `compile`, `compile-max` or `solution:NAME`."""
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
class Timing:
    """Times of a solution that passed.

    On a GPU, device time starts with a flushed L2 cache and excludes launch gaps, unless a flag says otherwise.
    """

    reference_ms: Spread
    """Device time of the reference, in ms."""
    solution_ms: Spread
    """Device time of the solution, in ms."""
    speedup: Spread
    """Median of the paired ratios, reference over solution."""
    wall_ms: Spread | None = None
    """Wall time of a call in a Python loop that does not wait for the device, in ms, by the candidate's clock."""
    baselines: tuple[Baseline, ...] = ()
    """The baselines that `--baseline` names, as far as they have times."""
    inputs: tuple[InputKind, ...] = ()
    """The times by kind of inputs, if they depend on the inputs. The first one decides: `solution_ms`, `speedup` and
    the baselines are those of its calls."""
    roofline: Roofline | None = None
    """The least time that the device needs for a call; absent where it is not known."""
    empty_ms: float | None = None
    """Time that the timer shows for an empty call, in ms."""
    reference_overhead_ms: float | None = None
    """Overhead of timer and launch that was subtracted from each time of the reference, in ms."""
    solution_overhead_ms: float | None = None
    """The same for the solution, measured in the candidate's process."""
    stopped_by: str | None = None
    """The stopping criterion that ended the measurement: `precision reached`, `noise settled`, `time budget` or `all
    calls made`."""
    gpu: GpuState | None = None
    """The state of the GPU during the calls; absent on the CPU and where NVML is not available."""
    gpu_unknown: str | None = None
    """Why the state of the GPU is not known."""
    flags: tuple[str, ...] = ()
    """Warnings that make these times less certain, one sentence each."""


@dataclass(frozen=True)
class KernelShare:
    """The time of one kernel, or one kind of copy, in a call. Launches of the same name are added up."""

    name: str
    """The name of the kernel, demangled."""
    origin: str
    """Where it comes from: `own` (CUDA source of the solution's, built or compiled at run time), `triton` (a Triton
    function of the solution's), `library` (PyTorch, NVIDIA or another library) or `copy`."""
    ms: float
    """Its time in ms."""
    share: float
    """Its share of the GPU's time in the call, from 0 to 1."""


@dataclass(frozen=True)
class Kernels:
    """The kernels that ran in one call on a GPU. Raises ValueError if `own_share` is not between 0 and 1."""

    own_share: float
    """The share of the GPU's time in kernels of the solution (`own` and `triton`), from 0 to 1."""
    top: tuple[KernelShare, ...] = ()
    """The longest kernels, longest first."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.own_share <= 1.0:
            raise ValueError(f"{self.own_share} is not a share of the GPU's time: it must be from 0 to 1")


@dataclass(frozen=True)
class Build:
    """How the solution's libraries were built."""

    seconds: float
    """Time that this run waited for the builds, in seconds; 0 if all libraries were in the cache."""
    cached: bool
    """Whether all libraries were in the cache."""
    headers: str
    """The PyTorch headers that were used: `slim`, or `full` and the reason."""


@dataclass(frozen=True)
class Environment:
    """Hardware and software that the result was obtained on."""

    torch: str
    """Version of PyTorch."""
    harness: str
    """Version of inlinebench."""
    gpu: str | None = None
    """Name of the GPU; absent on the CPU."""
    driver: str | None = None
    """Version of NVIDIA's driver; absent on the CPU."""
    cuda: str | None = None
    """CUDA version that PyTorch was built with; absent on the CPU."""
    cpu: str | None = None
    """Name and core count of the CPU; absent on a GPU."""
    peaks: str | None = None
    """The measured peak rates of the device, as text for a person."""
    tf32: bool = False
    """Whether `--tf32` left PyTorch's TF32 defaults unchanged."""


MOST_FIRST = 7
"""The most elements in `Mismatch.first`."""


@dataclass(frozen=True)
class Element:
    """One element that differs.

    Values are strings, because JSON has no NaN, infinity or complex numbers: `nan`, `-inf`, `1.5`, `1+2j`, `true`. They
    have as many digits as the dtype can distinguish.
    """

    index: tuple[int, ...]
    """Its index in the tensor."""
    expected: str
    """The value of the oracle, or of the reference where there is no oracle."""
    got: str
    """The value of the solution."""


@dataclass(frozen=True)
class Mismatch:
    """Where and how one tensor of one call differs from the expected values. Raises ValueError for contradictions."""

    what: str
    """The tensor: `output`, `output 1`, `buffer NAME` or `input 1, which the reference changes`."""
    dtype: str
    """Its dtype, without `torch.`."""
    shape: tuple[int, ...]
    """Its shape."""
    count: int
    """Its number of elements."""
    failed: int
    """The number of elements beyond the tolerance."""
    first: tuple[Element, ...]
    """The first failed elements in row-major order, at most `MOST_FIRST`."""
    worst: Element
    """The failed element with the largest error."""
    tolerance: float
    """The tolerance of this tensor, as in `Check.tolerance`."""
    worst_error: float | None = None
    """The error of `worst`, as in `Check.worst_error`; absent if it is NaN or infinite."""
    patterns: tuple[str, ...] = ()
    """Sentences about all failed elements, such as where they are."""
    call: str | None = None
    """The call in which they were found."""
    variant: str | None = None
    """The variant of the inputs of that call."""

    def __post_init__(self) -> None:
        if self.count != math.prod(self.shape) or not 1 <= self.failed <= self.count:
            raise ValueError(f"{self.failed} of {self.count} elements of shape {list(self.shape)} can't differ")
        for index in (self.worst.index, *(element.index for element in self.first)):
            inside = [0 <= at < size for at, size in zip(index, self.shape, strict=False)]
            if len(index) != len(self.shape) or not all(inside):
                raise ValueError(f"the index {list(index)} is outside the shape {list(self.shape)}")
        indices = [element.index for element in self.first]
        if indices != sorted(set(indices)) or len(indices) != min(self.failed, MOST_FIRST):
            raise ValueError(f"these are not the first of {self.failed} failed elements: {indices}")
        if self.worst not in self.first and (self.failed <= MOST_FIRST or self.worst.index <= indices[-1]):
            raise ValueError(f"the worst element {list(self.worst.index)} is missing from the first ones {indices}")
        if self.worst_error is not None and not self.tolerance < self.worst_error < math.inf:
            raise ValueError(f"an error of {self.worst_error} is not beyond the tolerance {self.tolerance}")


@dataclass(frozen=True)
class Shard:
    """A part of a run's work. Raises ValueError for parts that do not exist."""

    part: int
    """The number of the part, from 1."""
    parts: int
    """The number of parts."""
    rows: int
    """The number of results of all parts together."""

    def __post_init__(self) -> None:
        if not 1 <= self.part <= self.parts or self.rows < 0:
            raise ValueError(f"there is no part {self.part} of {self.parts} with {self.rows} results")

    @property
    def span(self) -> slice:
        """The results of this part, as a slice of the results of all parts."""
        return slice(self.rows * (self.part - 1) // self.parts, self.rows * self.part // self.parts)


@dataclass(frozen=True)
class Result:
    """The result of one evaluation: one solution of one problem at one shape.

    Raises ValueError for contradictions: `reason` is empty if and only if the verdict is `passed`; a `passed` result
    has a `check`; only a `passed` result has a `timing`; only a `wrong` result has a `mismatch`.
    """

    problem: str
    """Name of the problem."""
    solution: str
    """Name of the solution; `@reference` for the problem's own reference."""
    shape: str
    """Name of the shape, or the constants that `--set` replaced (`N=4,M=2`)."""
    device: str
    """The device, such as `cuda:0` or `cpu`."""
    verdict: Verdict
    """The outcome."""
    reason: str = ""
    """Why the solution did not pass."""
    check: Check | None = None
    """How the outputs compared; absent if no call was compared."""
    timing: Timing | None = None
    """Times; absent if the solution did not pass, if only correctness was checked, or if no call had a usable time."""
    kernels: Kernels | None = None
    """The kernels of one call; absent on the CPU and where they were not traced."""
    build: Build | None = None
    """How the solution's libraries were built; absent if it built none."""
    protections: tuple[str, ...] | None = None
    """The protections of the sandbox that the solution ran in; empty outside a sandbox."""
    seed: int | None = None
    """The seed of the run; `--seed` draws the same inputs again."""
    environment: Environment | None = None
    """Hardware and software of the evaluation."""
    log: str | None = None
    """Output of the compiler and of the solution; the traceback of an internal error."""
    level: int | None = None
    """Level of the problem; absent if it has none."""
    key: str | None = None
    """Digest of sources, shape, options, GPU model and software versions. `--resume` skips an evaluation whose key has
    a result."""
    mismatch: Mismatch | None = None
    """The first differing tensor, if the reason is wrong values."""
    seconds: float | None = None
    """Wall time of the evaluation in seconds, with builds that it waited for; absent if nothing was evaluated."""
    shard: Shard | None = None
    """The part of the work that the result belongs to; absent without `--shard`."""

    def __post_init__(self) -> None:
        passed = self.verdict is Verdict.PASSED
        if passed and self.check is None:
            raise ValueError("a passed result needs its check")
        if passed == bool(self.reason):
            raise ValueError("a result has a reason if and only if it did not pass")
        if self.timing is not None and not passed:
            raise ValueError(f"a result that is {self.verdict} can't have times")
        if self.mismatch is not None and self.verdict is not Verdict.WRONG:
            raise ValueError(f"a result that is {self.verdict} can't have a mismatch")


def to_json(result: Result) -> str:
    """Returns the result as one line of JSON, without a newline at the end. Fields that are None are left out.

    Raises ValueError for NaN and infinity, which JSON cannot represent.
    """
    return json.dumps({"schema": SCHEMA, **_encode(result)}, allow_nan=False)


def from_json(line: str) -> Result:
    """Returns the result that `to_json` wrote, in this or an older schema. Unknown fields are ignored.

    Raises ValueError if the line is not a result.
    """
    data = json.loads(line)
    if not isinstance(data, dict) or data.pop("schema", None) not in _READABLE:
        raise ValueError(f"not a result of schema {SCHEMA} or older: {line[:80]!r}")
    try:
        return typing.cast(Result, _decode(Result, data))
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a result of schema {SCHEMA}: {error}") from error


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        facts = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _encode(fact) for name, fact in facts.items() if fact is not None}
    if isinstance(value, Enum):
        return value.value
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode(kind: Any, value: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise TypeError(f"{kind.__name__} is {value!r}")
        hints = typing.get_type_hints(kind)
        facts = {_RENAMED.get(name, name): fact for name, fact in value.items()}
        return kind(**{name: _decode(hints[name], fact) for name, fact in facts.items() if name in hints})
    if typing.get_origin(kind) is tuple:
        return tuple(_decode(typing.get_args(kind)[0], item) for item in value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
