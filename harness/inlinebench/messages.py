"""What orchestrator, judge and rehearsal say to each other. All three are ours, so plain pickled records will do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inlinebench.records.build_request import BuildOutcome, BuildRequest
from inlinebench.records.result import Environment, Result
from inlinebench.sandbox.policy import Sandbox
from inlinebench.sandbox.watchdog import Limits
from inlinebench.timing.stopping import Sampling

CONSTRUCTION_SEED = 20260
"""Public: both models are constructed under it, so that equal layers draw equal weights. Inputs never use it."""


@dataclass(frozen=True)
class Settings:
    """The part of the options that a judge needs. Times in seconds."""

    device: str
    sampling: Sampling
    warmup: int
    timing: bool
    baselines: tuple[str, ...]
    tolerance: float | None
    seed: int
    variants: bool
    tf32: bool
    allow_library: bool
    defended: bool
    sanitize: str | None
    timeout: float
    sandbox: Sandbox
    limits: Limits
    cache: Path
    max_memory: int | None = None
    """Bytes on the device that a problem may need."""


@dataclass(frozen=True)
class ProblemAt:
    """A problem at a shape: the shape's name, or constants that replace the file's."""

    path: Path
    shape: str
    constants: Mapping[str, Any]
    precision: str | None = None
    """What floating-point inputs and weights are cast to: a key of `inlinebench.wire.arithmetic.DTYPES`."""

    @property
    def key(self) -> tuple[str, str, str]:
        return str(self.path), self.shape, repr((sorted(self.constants.items()), self.precision))


@dataclass(frozen=True)
class Evaluate:
    """Orchestrator to judge: evaluate one solution file (None: the problem's own reference).

    `following` is what this judge will probably be asked next.
    """

    problem_name: str
    solution_name: str
    problem: ProblemAt
    solution: Path | None
    shape_name: str
    level: int | None = None
    following: Evaluate | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Hello:
    """Judge to orchestrator, once: the device it owns, or why there is none."""

    device: str
    environment: Environment
    architectures: tuple[str, ...]
    unusable: str = ""


@dataclass(frozen=True)
class NeedRuntimeLibraries:
    """Judge to orchestrator: the harness's own libraries for the device; the answer is a Support or a reason."""


@dataclass(frozen=True)
class NeedBuild:
    """Judge to orchestrator: a candidate asks for a library; the answer is a BuildOutcome."""

    request: BuildRequest


@dataclass(frozen=True)
class NeedInit:
    """Orchestrator to judge: the constructor's arguments of a problem, to build a solution ahead."""

    problem: ProblemAt


@dataclass(frozen=True)
class Init:
    """Judge to orchestrator: pickled (args, kwargs), or None and the reason where the problem can't give them."""

    pickled: bytes | None
    reason: str = ""


@dataclass(frozen=True)
class Progress:
    """Judge to orchestrator: what it is doing now."""

    text: str


@dataclass(frozen=True)
class Done:
    """Judge to orchestrator: the result of an evaluation; the judge ends after one that left it unusable."""

    result: Result
    usable: bool = True


__all__ = [
    "CONSTRUCTION_SEED",
    "BuildOutcome",
    "BuildRequest",
    "Done",
    "Evaluate",
    "Hello",
    "Init",
    "NeedBuild",
    "NeedInit",
    "NeedRuntimeLibraries",
    "ProblemAt",
    "Progress",
    "Settings",
]
