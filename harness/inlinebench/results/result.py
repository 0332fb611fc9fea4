"""The records of a run's results.

Records reject contradictions with ValueError. Only a `passed` result has times, and every other result has a reason.
`None` means "not known" or "not applicable".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from inlinebench.device_kinds import known_kind
from inlinebench.results.launches import Counters, Launched, Multiprocessors
from inlinebench.results.memory import Memory
from inlinebench.results.repeats import Repeatability
from inlinebench.results.times import Timing, check_passes


class Verdict(str, Enum):
    """The outcome of evaluating one solution of one problem at one shape.

    A verdict is a failure, says something about the solution and depends on the sizes of the inputs, unless it says
    otherwise here. All else follows from that.
    """

    _value_: str
    meaning: str
    """What it means, as part of a sentence."""
    advice: str
    """What feedback says about it. May be empty."""
    is_failure: bool
    """Whether it counts as not passed, for example in the exit status."""
    is_about_solution: bool
    """Whether it says something about the solution. Otherwise the solution was not tried."""
    depends_on_shape: bool
    """Whether the sizes of the inputs may be the cause."""
    repeats: bool
    """Whether an equal evaluation would have it again, whatever else the machine does meanwhile. Memory and time may
    run short because of other work, and some rejections follow from times."""
    may_lack_shapes: bool
    """Whether its file may be unreadable, so that nobody knows the shapes."""

    PASSED = "passed", dict(
        meaning="every call matched the reference within the tolerance; the only verdict with times",
        is_failure=False, depends_on_shape=False)
    WRONG = "wrong", dict(
        meaning="values, shape, dtype, NaNs or state differ from the reference's, or the inputs were changed")
    NO_OWN_KERNEL = "no_own_kernel", dict(
        meaning="only a library's kernels ran, or it is unknown which ones ran; `--allow-library` lets it pass",
        advice="What to do: compute the outputs inside forward, in the solution's own kernels. A kernel that a failed "
               "build or a condition leaves out does not count.")
    REJECTED = "rejected", dict(
        meaning="it did what no honest solution does, such as work outside the clock or forged messages",
        advice="What to do: compute the outputs inside forward, on the current stream. Run nothing before, after or "
               "parallel to the call. docs/threat-model.md explains what is rejected and why.", repeats=False)
    BUILD_FAILED = "build_failed", dict(
        meaning="the compiler or the linker refused the source, or is missing", depends_on_shape=False)
    CRASHED = "crashed", dict(meaning="it raised an exception, was killed by a signal, or exited before it replied")
    TIMED_OUT = "timed_out", dict(
        meaning="it, or its build, exceeded its time limit (`--timeout`, `--build-timeout`)", repeats=False)
    OUT_OF_MEMORY = "out_of_memory", dict(meaning="its own allocations failed", repeats=False)
    INVALID = "invalid", dict(
        meaning="the file is not a solution: no `ModelNew`, an import error, or another constructor",
        depends_on_shape=False, may_lack_shapes=True)
    SKIPPED = "skipped", dict(
        meaning="it can't run here; the reason says why", is_failure=False, is_about_solution=False,
        depends_on_shape=False, repeats=False, advice="This says nothing about the solution: it was not run.")
    PROBLEM_ERROR = "problem_error", dict(
        meaning="the problem file or its reference fails, or a step of it exceeds `--problem-timeout`",
        is_about_solution=False, repeats=False, may_lack_shapes=True,
        advice="This says nothing about the solution: the problem itself fails.")
    INTERNAL_ERROR = "internal_error", dict(
        meaning="the harness failed; this says nothing about the solution", is_about_solution=False,
        depends_on_shape=False, repeats=False, advice="This says nothing about the solution: the harness failed.")

    def __new__(cls, value: str, facts: Mapping[str, Any] = {}) -> Verdict:
        verdict = str.__new__(cls, value)
        verdict._value_ = value
        vars(verdict).update(advice="", is_failure=True, is_about_solution=True,
                             depends_on_shape=True, repeats=True, may_lack_shapes=False)
        vars(verdict).update(facts)
        return verdict

    @property
    def colour(self) -> str:
        """Green if passed, yellow if it says nothing about the solution, otherwise red."""
        return ("red" if self.is_failure else "green") if self.is_about_solution else "yellow"

    @property
    def symbol(self) -> str:
        """An emoji."""
        return {"red": "❌", "green": "✅", "yellow": "⚠️" if self.is_failure else "⏭️"}[self.colour]

    def __str__(self) -> str:
        return self._value_


MOST_ULPS = 12
"""The number of the last bin of `Errors.ulps`."""


@dataclass(frozen=True)
class Errors:
    """The errors of an output's elements against the oracle, in one call."""

    median: float
    """The median, in units of `sigma`, after the units in the last place that the rule allows are taken off. `sigma` is
    the standard deviation of an element when the inputs change by no more than the tolerance."""
    high: float
    """What 99.9 % of the elements are below, in the same unit."""
    worst: float
    """The largest one, in the same unit."""
    rel_l2: float = 0.0
    """The L2 norm of the errors over the L2 norm of the oracle."""
    ulps: tuple[int, ...] = ()
    """A histogram in units in the last place: the numbers of elements with errors below 1/2, from 1/2 to 1, from 1 to
    2, from 2 to 4 and so on. The last bin has no end."""


@dataclass(frozen=True)
class Accuracy:
    """How accurate an output is compared with the reference's, in one call. Large outputs are sampled."""

    what: str
    """The output."""
    solution: Errors
    """The solution's errors."""
    reference: Errors
    """The errors of the reference in its own dtype."""


@dataclass(frozen=True)
class Check:
    """How the outputs compared over all calls, warm-up calls included.

    Errors are against the oracle. Each is the largest of any call and any output, and is absent where no elements were
    comparable.
    """

    calls: int
    """The number of calls that matched. If one did not, it counts as well."""
    tolerance: float
    """The tolerance, as `--tol` takes it; the largest one if outputs differ in dtype."""
    oracle: str
    """What outputs were compared with: `float64`, or `reference` where no float64 oracle could be computed."""
    weights: str
    """How the reference's weights were transferred to the solution, for example `by name`."""
    worst_error: float | None = None
    """The largest error of any element, as a share of the element's limit, times `tolerance`: the quantity that
    `tolerance` bounds. `inlinebench.compare.tolerance` defines the limit."""
    max_abs_error: float | None = None
    """The largest absolute error of any element, in the output's unit."""
    rel_l2_error: float | None = None
    """The L2 norm of the error over the L2 norm of the oracle."""
    reference_rel_l2_error: float | None = None
    """The same for the reference in its own dtype."""
    notes: tuple[str, ...] = ()
    """Remarks on the comparison, one sentence each."""
    accuracy: tuple[Accuracy, ...] = ()
    """The accuracy of each floating-point output in one call."""


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
    launches: int | None = None
    """How often it ran in the call; absent where it is not known."""
    launch: Launched | None = None
    """How its longest launch was configured; absent for copies, and where it is not known."""
    counters: Counters | None = None
    """What the GPU counted; absent without `--profile` and Nsight Compute."""


@dataclass(frozen=True)
class PassKernels:
    """The kernels of one pass of a call with a backward."""

    name: str
    """The pass: `forward` or `backward`."""
    ms: float
    """The time of its kernels in ms."""
    own_share: float
    """The share of this time in kernels of the solution, from 0 to 1."""


@dataclass(frozen=True)
class Kernels:
    """The kernels that ran in one call on a GPU.

    Raises ValueError if `own_share` is not between 0 and 1, and for passes that are not `forward` and `backward`.
    """

    own_share: float
    """The share of the GPU's time in kernels of the solution (`own` and `triton`), from 0 to 1."""
    top: tuple[KernelShare, ...] = ()
    """The longest kernels, longest first."""
    passes: tuple[PassKernels, ...] = ()
    """How the time is split between forward and backward; empty for calls without a backward."""
    activities: int | None = None
    """How many kernels and copies ran in the call; absent where it is not known."""
    idle_ms: float | None = None
    """The time in ms between the first and the last of them in which none ran; absent where it is not known."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.own_share <= 1.0:
            raise ValueError(f"{self.own_share} is not a share of the GPU's time: it must be from 0 to 1")
        check_passes([each.name for each in self.passes])


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
    multiprocessors: Multiprocessors | None = None
    """The SMs of the GPU and their limits; absent on the CPU."""


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


def elements_differ(failed: int, count: int) -> str:
    """Says how many of a tensor's elements are wrong."""
    if count == 1:
        return "its one element differs"
    if failed == count:
        return f"all {count} elements differ"
    return f"{failed} of {count} elements differ ({100 * failed / count:.3g} %)"


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
class Fuzzed:
    """What `--fuzz` found. Raises ValueError for counts that contradict each other."""

    wanted: int
    """The number of sizes that were asked for."""
    sizes: int
    """The number of sizes that were drawn; fewer than asked for if the ranges have no more."""
    refused: int
    """The number of further sizes that were left out, because the reference fails there, or returns NaN or nothing."""
    passed: int
    """The number of sizes that the solution passed; before the first failure, if it failed."""
    failed_at: tuple[str, ...] | None = None
    """The constants of the smallest size at which it fails, as `--set` takes them; absent if it passed, or if the size
    is not the cause."""
    drawn: tuple[str, ...] | None = None
    """The constants of the size at which it failed first, from which that one was found; absent as `failed_at` is."""
    alone: bool | None = None
    """Whether it fails there also in a process that computes no other size; absent as `failed_at` is."""

    def __post_init__(self) -> None:
        if not (0 <= self.passed <= self.sizes <= self.wanted) or self.refused < 0:
            raise ValueError(f"{self.passed} of {self.sizes} sizes can't have passed of {self.wanted} that were wanted")
        if not (self.failed_at is None) == (self.drawn is None) == (self.alone is None):
            raise ValueError("a size that fails is found from one that was drawn")


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


WITH_BACKWARD = "+backward"
"""What the name of a shape ends with if `--backward` added a backward to the calls of a problem."""


@dataclass(frozen=True)
class Result:
    """The result of one evaluation: one solution of one problem at one shape.

    Raises ValueError for contradictions: `reason` is empty if and only if the verdict is `passed`; a `passed` result
    has a `check`; only a `passed` result has a `timing`; only a `wrong` result has a `mismatch`; only a `passed` one
    has `repeats` or `memory`; only a result with `backward` has passes, or a shape that ends with `+backward`.
    """

    problem: str
    """Name of the problem."""
    solution: str
    """Name of the solution; `@reference` for the problem's own reference."""
    shape: str
    """Name of the shape or workload, or the constants that `--set` replaced (`N=4,M=2`); `derived` for a derived
    shape, `fuzz` for drawn sizes. It ends with `+backward` if `--backward` was given."""
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
    """Wall time of the evaluation in seconds, with builds that it waited for; an equal share of it for each workload of
    a set; absent if nothing was evaluated."""
    shard: Shard | None = None
    """The part of the work that the result belongs to; absent without `--shard`."""
    constants: tuple[str, ...] | None = None
    """The constants of a derived shape, as `--set` takes them (`N=4`); absent at other shapes."""

    backward: bool | None = None
    """True if a call was a forward and a backward, so that gradients were compared and times cover both; absent
    otherwise."""

    fuzz: Fuzzed | None = None
    """The sizes that were drawn; absent without `--fuzz`."""

    weight: float | None = None
    """The weight of this workload in the set of its problem; absent at a shape that was not evaluated in a set."""

    repeats: Repeatability | None = None
    """Whether the solution computes the same bits for the same inputs; absent without `--determinism`."""

    memory: Memory | None = None
    """The device memory of a call; absent on the CPU, with `--check`, in a set of workloads, and where it could not be
    measured."""

    @property
    def times_are_comparable(self) -> bool:
        """Whether the times say how fast the solution is. Those of CUDA on a CPU do not."""
        kind = known_kind(self.device)
        return kind is None or kind.times_are_comparable

    @property
    def is_full(self) -> bool:
        """Whether the problem was evaluated at the sizes of its file."""
        return self.shape.removesuffix(WITH_BACKWARD) == "full"

    @property
    def failed_derived(self) -> bool:
        """Whether the solution fails at a derived shape, so that it may be right with the file as written."""
        return bool(self.constants) and self.verdict.depends_on_shape

    def __post_init__(self) -> None:
        passed = self.verdict is Verdict.PASSED
        if self.weight is not None and not 0 < self.weight < math.inf:
            raise ValueError(f"the weight {self.weight} is not a positive number")
        if passed and self.check is None:
            raise ValueError("a passed result needs its check")
        if passed == bool(self.reason):
            raise ValueError("a result has a reason if and only if it did not pass")
        if self.timing is not None and not passed:
            raise ValueError(f"a result that is {self.verdict} can't have times")
        if self.repeats is not None and not passed:
            raise ValueError(f"a result that is {self.verdict} can't have repeated calls")
        if self.memory is not None and not passed:
            raise ValueError(f"a result that is {self.verdict} can't have a memory")
        if self.mismatch is not None and self.verdict is not Verdict.WRONG:
            raise ValueError(f"a result that is {self.verdict} can't have a mismatch")
        split = (self.timing and self.timing.passes) or (self.kernels and self.kernels.passes)
        if not self.backward and (split or self.shape.endswith(WITH_BACKWARD)):
            raise ValueError("a result whose calls have no backward can't have its passes or its shape")
