"""Every record that a run produces, and its JSON form (one line a result).

The records refuse contradictions: only `passed` carries times, and everything else carries a reason. A fact that is
not known is absent from the JSON, never null.
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
_READABLE = (1, 2)
"""Schemas that can be read. Unknown fields are ignored."""
_RENAMED = {"floor": "roofline"}
"""Fields of schema 1 that have another name now."""
MEMORY, COMPUTE = "memory", "compute"
"""What bounds a roofline time."""


class Verdict(str, Enum):
    """What the judge says of one solution of one problem at one shape."""

    PASSED = "passed"
    """Every call matched the reference within the tolerance. The only verdict with times."""
    WRONG = "wrong"
    """Values, shape, dtype, NaN, state differ from the reference's, or inputs were changed."""
    REJECTED = "rejected"
    """It cheats, or could not have done the work."""
    BUILD_FAILED = "build_failed"
    """The compiler or the linker refused the source, or is missing."""
    CRASHED = "crashed"
    """The candidate raised, was killed by a signal, or left before it answered."""
    TIMED_OUT = "timed_out"
    """The candidate used up its time, or the build did."""
    OUT_OF_MEMORY = "out_of_memory"
    """The candidate's own allocations failed."""
    INVALID = "invalid"
    """The file can't be a solution: no `ModelNew`, an import error, another constructor."""
    SKIPPED = "skipped"
    """It can't run here; the reason says why."""
    PROBLEM_ERROR = "problem_error"
    """The problem's own file or reference fails."""
    INTERNAL_ERROR = "internal_error"
    """The harness failed; nothing is said about the solution."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Spread:
    """A quantity measured many times, in milliseconds for times, in MHz for clocks, and as a ratio for speedups.

    `low` and `high` are the quartiles for times, the 5 % and 95 % quantiles for clocks, and for speedups the 95 %
    bootstrap interval of the median, widened by what clock and processes may be off by.
    """

    median: float
    low: float
    high: float
    calls: int | None = None

    def __post_init__(self) -> None:
        if not self.low <= self.median <= self.high:
            raise ValueError(f"the median {self.median} is not between {self.low} and {self.high}")


@dataclass(frozen=True)
class Check:
    """How the outputs compared, over all calls. Errors are against the oracle; absent where nothing was comparable.

    `worst_error` is the largest `(|out - y| - a) / (s + |y|)` of any element, the figure that `tolerance` bounds
    (`inlinebench.compare.tolerance` says what these are).
    """

    calls: int
    tolerance: float
    oracle: str
    weights: str
    worst_error: float | None = None
    max_abs_error: float | None = None
    rel_l2_error: float | None = None
    reference_rel_l2_error: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roofline:
    """The least time of a call by both terms, in ms, and which one binds (`memory` or `compute`).

    What binds is a field and not derived, so that it stands in the result's JSON; it can't contradict the terms.
    """

    bytes: int
    flops: int
    memory_ms: float
    compute_ms: float
    binds: str

    def __post_init__(self) -> None:
        if self.bytes < 0 or self.flops < 0:
            raise ValueError(f"{self.bytes} bytes and {self.flops} operations are no work")
        for term in (self.memory_ms, self.compute_ms):
            if not 0 <= term < math.inf:
                raise ValueError(f"{term} ms is no time")
        if self.binds != binding(self.memory_ms, self.compute_ms):
            raise ValueError(f"{self.memory_ms} ms of memory and {self.compute_ms} ms of compute: not {self.binds}")

    @property
    def ms(self) -> float:
        """The roofline time: the larger term."""
        return max(self.memory_ms, self.compute_ms)


def binding(memory_ms: float, compute_ms: float) -> str:
    """Which of the two terms of a roofline time is the larger."""
    return COMPUTE if compute_ms > memory_ms else MEMORY


@dataclass(frozen=True)
class GpuState:
    """A GPU over some calls: clocks in MHz, the highest temperature in °C, the median power in W.

    `low` and `high` of the clocks are the 5 % and 95 % quantiles. `dropped` of the `samples` were throttled; clocks and
    power are those of the rest. None is dropped where most were throttled. `other_processes` is absent where it can't
    be known.
    """

    sm_mhz: Spread
    memory_mhz: Spread
    temperature_c: float
    samples: int
    dropped: int = 0
    throttled: tuple[str, ...] = ()
    power_w: float | None = None
    other_processes: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.dropped < self.samples:
            raise ValueError(f"{self.dropped} of {self.samples} samples can't have been dropped")
        if self.dropped and not self.throttled:
            raise ValueError("samples were dropped without a reason")


@dataclass(frozen=True)
class Baseline:
    """Something else that a solution is compared with: its time, and the solution's speedup over it.

    `name` is as `--baseline` has it. What `torch.compile` made ran on the same inputs, and its ratios are paired as the
    reference's are; another solution's time is its own evaluation's, and the interval is that of both speedups.
    """

    name: str
    ms: Spread
    speedup: Spread


@dataclass(frozen=True)
class Timing:
    """Times of a solution that passed."""

    reference_ms: Spread
    """Device time of the reference, in ms."""
    solution_ms: Spread
    """Device time of the solution, in ms."""
    speedup: Spread
    """Median of the paired ratios, reference over solution."""
    wall_ms: Spread | None = None
    """Wall time of a call in a loop in Python, in ms, by the candidate's clock."""
    baselines: tuple[Baseline, ...] = ()
    roofline: Roofline | None = None
    """The shortest time that the hardware allows."""
    empty_ms: float | None = None
    """What the timer shows for an empty call, in ms."""
    reference_overhead_ms: float | None = None
    """Overhead of timer and launch that was subtracted from each time of the reference, in ms."""
    solution_overhead_ms: float | None = None
    """The same for the solution, measured in the candidate's process."""
    stopped_by: str | None = None
    """Why no more calls were made."""
    gpu: GpuState | None = None
    gpu_unknown: str | None = None
    """Why the state of the GPU is not known."""
    flags: tuple[str, ...] = ()
    """What makes these times less certain."""


@dataclass(frozen=True)
class KernelShare:
    """One kernel (or copy) of a call, by its name: whose it is, its time in ms, and its share of the GPU's time.

    `origin` is `own`, `triton` (written in the solution's file), `library` (PyTorch's and NVIDIA's) or `copy`.
    """

    name: str
    origin: str
    ms: float
    share: float


@dataclass(frozen=True)
class Kernels:
    """What ran in a call on a GPU: the share of its time in kernels of the solution's own, and the longest ones."""

    own_share: float
    top: tuple[KernelShare, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.own_share <= 1.0:
            raise ValueError(f"{self.own_share} is no share of the GPU's time")


@dataclass(frozen=True)
class Build:
    """How the solution's libraries were built; `seconds` is what this run waited for, 0 from the cache."""

    seconds: float
    cached: bool
    headers: str


@dataclass(frozen=True)
class Environment:
    """What the times were taken on. `peaks` are the speeds that were measured there, in words."""

    torch: str
    harness: str
    gpu: str | None = None
    driver: str | None = None
    cuda: str | None = None
    cpu: str | None = None
    peaks: str | None = None
    tf32: bool = False


MOST_FIRST = 7
"""Elements of a mismatch beside the worst one."""


@dataclass(frozen=True)
class Element:
    """One element that differs. Values are texts, because JSON has no NaN, no infinity and no complex numbers: `nan`,
    `-inf`, `1.5`, `1+2j`, `true`; in as many digits as the dtype can tell apart."""

    index: tuple[int, ...]
    expected: str
    got: str


@dataclass(frozen=True)
class Mismatch:
    """Where and how one tensor of one call differs from what was expected.

    `what` is `output`, `output 1`, `buffer NAME` or `input 1, which the reference changes`. Of `count` elements
    `failed` ones are beyond the tolerance: the `first` of them, in order, and the `worst`. `worst_error` is the worst
    one's error, as `tolerance` bounds it; absent where NaN or infinity leaves no number. `patterns` are sentences about
    all of them. `call` and `variant` (of the inputs) tell in which call it was.
    """

    what: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    failed: int
    first: tuple[Element, ...]
    worst: Element
    tolerance: float
    worst_error: float | None = None
    patterns: tuple[str, ...] = ()
    call: str | None = None
    variant: str | None = None

    def __post_init__(self) -> None:
        if self.count != math.prod(self.shape) or not 1 <= self.failed <= self.count:
            raise ValueError(f"{self.failed} of {self.count} elements of shape {list(self.shape)} can't differ")
        for index in (self.worst.index, *(element.index for element in self.first)):
            inside = [0 <= at < size for at, size in zip(index, self.shape, strict=False)]
            if len(index) != len(self.shape) or not all(inside):
                raise ValueError(f"no element {list(index)} in shape {list(self.shape)}")
        indices = [element.index for element in self.first]
        if indices != sorted(set(indices)) or len(indices) != min(self.failed, MOST_FIRST):
            raise ValueError(f"these are not the first of {self.failed} elements: {indices}")
        if self.worst not in self.first and (self.failed <= MOST_FIRST or self.worst.index <= indices[-1]):
            raise ValueError(f"the worst element {list(self.worst.index)} belongs among the first ones {indices}")
        if self.worst_error is not None and not self.tolerance < self.worst_error < math.inf:
            raise ValueError(f"an error of {self.worst_error} is not beyond the tolerance {self.tolerance}")


@dataclass(frozen=True)
class Result:
    """One evaluation. `reason` is empty if and only if the verdict is `passed`.

    `level` is the problem's. `key` is the same for what was evaluated from the same sources, at the same shape, with
    the same options, on a GPU of the same model: `--resume` goes by it. `protections` are the parts of the sandbox that
    the solution ran in. `mismatch` belongs to the reason, where that is about values.
    """

    problem: str
    solution: str
    shape: str
    device: str
    verdict: Verdict
    reason: str = ""
    check: Check | None = None
    timing: Timing | None = None
    kernels: Kernels | None = None
    build: Build | None = None
    protections: tuple[str, ...] | None = None
    seed: int | None = None
    environment: Environment | None = None
    log: str | None = None
    level: int | None = None
    key: str | None = None
    mismatch: Mismatch | None = None

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
    """One line of JSON (no line break at the end); absent facts are left out.

    Raises ValueError for a number that JSON can't hold (NaN, infinity).
    """
    return json.dumps({"schema": SCHEMA, **_encode(result)}, allow_nan=False)


def from_json(line: str) -> Result:
    """The result that `to_json` wrote, in this or an older schema. Unknown fields are ignored.

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
