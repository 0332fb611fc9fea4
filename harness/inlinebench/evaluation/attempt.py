"""What evaluations of a judge share: what they borrow from it, what becomes of one candidate, and how one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inlinebench.evaluation.baselines import Baselines
from inlinebench.messages import Settings
from inlinebench.records.build_request import Support
from inlinebench.records.result import Build as BuildRecord
from inlinebench.records.result import Check, Kernels, Mismatch, Timing, Verdict
from inlinebench.timing.call import Clock
from inlinebench.timing.gpu_state import GpuWatch, NoGpuState
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.profile import Tracer

if TYPE_CHECKING:  # which needs what is here
    from inlinebench.evaluation.candidates import Candidates


class Failed(Exception):
    """The solution did not pass. `mismatch` is what the reason is about, where that is values."""

    def __init__(self, verdict: Verdict, reason: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.mismatch = verdict, reason, mismatch


@dataclass
class Tools:
    """What an evaluation borrows from its judge."""

    settings: Settings
    clock: Clock
    tracer: Tracer
    watch: GpuWatch | NoGpuState | None
    peaks: Peaks | None
    baselines: Baselines | None
    support: Support
    candidates: Candidates
    progress: Callable[[str], None]


@dataclass
class Attempt:
    """What became of one candidate; the failure is None if it passed."""

    failure: Failed | None = None
    check: Check | None = None
    timing: Timing | None = None
    kernels: Kernels | None = None
    build: BuildRecord | None = None
    log: str = ""
    weights_changed: bool = False
    notes: set[str] = field(default_factory=set)
