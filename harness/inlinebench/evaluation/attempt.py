"""Records that the parts of an evaluation share: what the judge lends to it, and what one candidate yields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.devices.cuda.state import GpuWatch, NoGpuState
from inlinebench.evaluation.baselines import Baselines
from inlinebench.evaluation.candidates import Candidates
from inlinebench.evaluation.failures import Failed
from inlinebench.messages import Evaluate, Settings
from inlinebench.problem.workload import Workload
from inlinebench.results.memory import Memory
from inlinebench.results.repeats import Repeatability
from inlinebench.results.result import Build, Check, Kernels
from inlinebench.results.times import Timing
from inlinebench.timing.call import Clock
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.trace import Tracer


@dataclass
class Tools:
    """What a judge provides to all of its evaluations."""

    settings: Settings
    """The options of the run."""
    clock: Clock
    """Times calls in the judge's own process."""
    tracer: Tracer
    """Records which kernels run in the judge's own process."""
    watch: GpuWatch | NoGpuState | None
    """Reads the state of the GPU. NoGpuState says why it cannot; None on the CPU or without timing."""
    peaks: Peaks | None
    """Measured peak rates of the GPU. None on the CPU or without timing."""
    baselines: Baselines | None
    """Baselines of the current workload. None if none were asked for."""
    runtime_libraries: RuntimeLibraries
    """The libraries that a candidate loads for its device."""
    candidates: Candidates
    """Starts candidate processes."""
    progress: Callable[[str], None]
    """Reports the current step to the scheduler."""


@dataclass(frozen=True)
class Task:
    """One of the evaluations that one candidate makes."""

    workload: Workload
    """The workload."""
    job: Evaluate
    """The solution, and the names for the result."""
    tools: Tools
    """What the judge provides, with the baselines of this workload."""

    @property
    def tolerance(self) -> float | None:
        """The tolerance of the options, or else that of the workload. None for those of the dtypes."""
        given = self.tools.settings.tolerance
        return self.job.tolerance if given is None else given


@dataclass
class Attempt:
    """What one candidate process yielded."""

    failure: Failed | None = None
    """Why the solution did not pass. None if it passed."""
    check: Check | None = None
    """How the outputs compared, over all calls so far."""
    timing: Timing | None = None
    """The times. None without usable ones."""
    kernels: Kernels | None = None
    """Which kernels ran. None if they were not profiled."""
    build: Build | None = None
    """The time and the kind of the solution's builds. None if it built nothing."""
    repeats: Repeatability | None = None
    """Whether it computes the same bits for the same inputs. None if that was not asked for."""
    memory: Memory | None = None
    """The memory of a call. None if it could not be measured."""
    log: str = ""
    """The end of what compilers, the solution and a sanitizer printed."""

    def fail(self, why: str, failure: Failed) -> None:
        """Sets the failure, and says why it counts if the workload was right in other calls."""
        self.failure, self.timing = Failed(failure.verdict, f"{why}: {failure.reason}", failure.mismatch), None

    def add_note(self, note: str) -> None:
        """Adds a remark to the record of the check, if there is one."""
        if self.check is not None:
            self.check = replace(self.check, notes=(*self.check.notes, note))
