"""What the evaluations of a judge share, and what becomes of one candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inlinebench.evaluation.baselines import Baselines
from inlinebench.evaluation.candidates import Candidates
from inlinebench.evaluation.failures import Failed
from inlinebench.messages import Settings
from inlinebench.records.build_request import RuntimeLibraries
from inlinebench.records.result import Build, Check, Kernels, Timing
from inlinebench.timing.call import Clock
from inlinebench.timing.gpu_state import GpuWatch, NoGpuState
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.profile import Tracer


@dataclass
class Tools:
    """What an evaluation borrows from its judge."""

    settings: Settings
    clock: Clock
    tracer: Tracer
    watch: GpuWatch | NoGpuState | None
    peaks: Peaks | None
    baselines: Baselines | None
    runtime_libraries: RuntimeLibraries
    candidates: Candidates
    progress: Callable[[str], None]


@dataclass
class Attempt:
    """What became of one candidate. `failure` is None if it passed."""

    failure: Failed | None = None
    check: Check | None = None
    timing: Timing | None = None
    kernels: Kernels | None = None
    build: Build | None = None
    log: str = ""
    weights_changed: bool = False
    notes: set[str] = field(default_factory=set)
