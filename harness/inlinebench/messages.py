"""Messages between the scheduler, the judge and the probe. `inlinebench.process.steps` has one more.

All three processes run only code of the harness, so the messages are pickled dataclasses. A candidate process runs
untrusted code; it exchanges JSON with the judge instead (`inlinebench.process.replies`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inlinebench.builds.request import BuildOutcome, BuildRequest
from inlinebench.options.judge import JudgeOptions
from inlinebench.problem.shapes.ranges import Ranges
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Environment, Result
from inlinebench.sandbox.given import readable_for
from inlinebench.sandbox.policy import Sandbox
from inlinebench.sandbox.watchdog import Limits
from inlinebench.timing.stopping import Sampling

if TYPE_CHECKING:
    from inlinebench.wire.backward import GradientForm

CONSTRUCTION_SEED = 20260
"""The public seed. Reference and solution are both constructed under it, so that equal layers draw equal weights. It is
never used for inputs."""


@dataclass(frozen=True, kw_only=True)
class Settings(JudgeOptions):
    """What a judge needs: its options, and what a run adds to them."""

    device: str
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    seed: int
    """The seed of the run. Inputs and all other secret random choices derive from it."""
    sandbox: Sandbox
    """The protections that are switched on for candidates."""
    limits: Limits
    """Limits on the host memory, processes and files of a candidate."""
    cache: Path
    """The folder of cached builds and measured peaks."""

    @property
    def timing(self) -> bool:
        """Whether to time calls."""
        return not self.check and self.sanitize is None

    @property
    def sampling(self) -> Sampling:
        """How many calls count, and when enough were timed."""
        return Sampling(self.min_calls, self.max_calls, self.time_budget, self.half_width, self.at_least)

    @property
    def memory_bytes(self) -> int | None:
        """The most device memory that a problem may need."""
        return None if self.max_memory is None else int(self.max_memory * 2**30)

    @property
    def holds_calls(self) -> bool:
        """Whether the judge times some calls itself, on a GPU."""
        return self.timing and not self.trust


@dataclass(frozen=True)
class ProblemAt:
    """A problem file at one shape and precision."""

    path: Path
    """The problem file."""
    shape: str
    """The name of a shape: `full`, or a key of the file's `SHAPES`."""
    constants: Mapping[str, Any]
    """Values that replace the file's module-level constants (`--set`, or a derived shape), by name."""
    precision: str | None = None
    """The dtype that floating-point inputs and weights are cast to: a key of `inlinebench.wire.arithmetic.DTYPES`."""
    alternatives: tuple[Mapping[str, Any], ...] = ()
    """Constants of a derived shape to try in turn if the reference does not run with `constants`."""
    confirming: tuple[Mapping[str, Any], ...] = ()
    """Constants of other shapes at which a failure at a derived shape is tried again: at the first that the reference
    runs with."""
    oracle: bool = True
    """Whether the reference may run in float64. False to repeat an evaluation in which it took too long there."""
    backward: bool = False
    """Whether a call is a forward and a backward."""
    gradients: GradientForm | None = None
    """What a call with a backward differentiates. The probe finds it out."""

    @property
    def is_derived(self) -> bool:
        """Whether `constants` are those of a derived shape."""
        return bool(self.alternatives or self.confirming)

    @property
    def what_runs(self) -> str:
        """What of a model a call runs, in words."""
        return "forward or backward" if self.backward else "forward"

    @property
    def key(self) -> tuple[str, str, str]:
        """A hashable value that is equal for equal problems."""
        return str(self.path), self.shape, repr(
            (sorted(self.constants.items()), self.precision, self.oracle, self.backward))


@dataclass(frozen=True)
class Fuzz:
    """The sizes to draw for an evaluation."""

    count: int
    """How many."""
    ranges: Ranges
    """What they are drawn from."""
    problem: ProblemAt
    """The problem as written, but for the constants of `--set`."""


@dataclass(frozen=True)
class Evaluate:
    """The evaluation of one solution at one shape, or at drawn sizes."""

    problem_name: str
    """The problem's name in the result."""
    solution_name: str
    """The solution's name in the result."""
    problem: ProblemAt
    """The problem to evaluate against."""
    solution: Path | None
    """The solution file, or None to evaluate the problem's own reference."""
    shape_name: str
    """The shape's name in the result."""
    level: int | None = None
    """The problem's level in KernelBench."""
    alone: bool = False
    """Whether the solution is given only its own file, not the files beside it."""
    rivals: tuple[str | None, ...] = ()
    """Digests of what the solutions are given that this one's speedup is compared with. None if it cannot be read."""
    weight: float | None = None
    """The weight of a workload in its set, whose evaluations one process makes. None for a shape that is in no set."""
    tolerance: float | None = None
    """The tolerance that the problem declares for this workload. That of the options comes before it."""
    fuzz: Fuzz | None = None
    """The sizes to draw; `problem` is then at a shape of its own. None for an evaluation at that shape."""
    explains: bool = True
    """Whether to find out what a wrong output depends on. False to repeat an evaluation in which that took too long."""
    following: Evaluate | None = field(default=None, compare=False)
    """The evaluation that this judge will probably get next. Its candidate can start early."""

    @property
    def in_set(self) -> bool:
        """Whether it is one of a set."""
        return self.weight is not None

    @property
    def is_library(self) -> bool:
        """Whether it is a library solution, which needs no kernel of its own."""
        return self.solution_name == LIBRARY

    @property
    def file(self) -> Path:
        """The file that the candidate imports: the solution's, or the problem's to evaluate its reference."""
        return self.problem.path if self.solution is None else self.solution

    @property
    def given(self) -> list[Path]:
        """The paths that the candidate is given; see `inlinebench.sandbox.given`."""
        return readable_for(self.file, self.alone)


Jobs = tuple[Evaluate, ...]
"""Scheduler to judge: the evaluations of one solution that one process makes, usually one. The reply is `Done`."""


@dataclass(frozen=True)
class Hello:
    """Judge to scheduler, once: the reply to `Settings`."""

    device: str
    """The device that the judge owns, such as `cuda:0`. Empty if it has none."""
    environment: Environment
    """The hardware and software that results on this device are recorded with."""
    architectures: tuple[str, ...]
    """The compute capabilities to build for, as nvcc writes them (`90`). Empty on the CPU."""
    unusable: str = ""
    """Why the device cannot be used. Empty if it can."""


@dataclass(frozen=True)
class NeedRuntimeLibraries:
    """Judge to scheduler: build the runtime libraries for the device. The reply is `RuntimeLibraries`, or a `str` with
    the reason why they could not be built."""


@dataclass(frozen=True)
class NeedBuild:
    """Judge to scheduler: a candidate asks for an extension. The reply is a `BuildOutcome`."""

    request: BuildRequest
    """The extension to build."""


@dataclass(frozen=True)
class NeedInit:
    """Scheduler to judge: get a problem's constructor arguments, to prebuild its solutions. The reply is `Init`."""

    problem: ProblemAt
    """The problem whose `get_init_inputs` is called."""


@dataclass(frozen=True)
class Init:
    """Judge to scheduler: the constructor arguments of a problem."""

    pickled: bytes | None
    """The pickled `(args, kwargs)`, or None if there are none."""
    reason: str = ""
    """Why there are no arguments. Empty otherwise."""


@dataclass(frozen=True)
class Status:
    """Judge to scheduler: a status message."""

    text: str
    """The current step, for the progress line."""


@dataclass(frozen=True)
class Done:
    """Judge to scheduler: evaluations are finished."""

    results: tuple[Result, ...]
    """Their results, in order."""
    usable: bool = True
    """Whether the judge can go on. A CUDA error stays with its process, so the judge ends after one."""


__all__ = [
    "CONSTRUCTION_SEED",
    "BuildOutcome",
    "BuildRequest",
    "Done",
    "Evaluate",
    "Fuzz",
    "Hello",
    "Init",
    "Jobs",
    "NeedBuild",
    "NeedInit",
    "NeedRuntimeLibraries",
    "ProblemAt",
    "Settings",
    "Status",
]
