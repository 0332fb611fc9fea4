"""What an integrity check looks at, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.requests import Requests
from inlinebench.problem.workload import Workload
from inlinebench.results.result import Kernels, Verdict
from inlinebench.timing.trace import Activity, Traced, Tracer


@dataclass(frozen=True)
class Context:
    """What an integrity check of a candidate looks at. All its calls have matched."""

    workload: Workload
    """The problem at its shape, with the shared buffers."""
    requests: Requests
    """The candidate's requests."""
    reference: Reference
    """The reference of this candidate's calls."""
    tracer: Tracer
    """Records which kernels run in the judge's own process."""
    trace: Callable[[Traced], Sequence[Activity]]
    """Makes one traced call of the solution and returns the GPU's activities if it is traced for them. Raises Failed.
    """
    allow_library: bool
    """Whether the solution may pass without a kernel of its own."""
    progress: Callable[[str], None]
    """Reports the current step."""


@dataclass(frozen=True)
class Finding:
    """What an integrity check found."""

    verdict: Verdict | None = None
    """The verdict. None if nothing speaks against the solution."""
    reason: str = ""
    """Why, if there is a verdict."""
    note: str = ""
    """A remark for the record of the check. May be empty."""
    kernels: Kernels | None = None
    """Which kernels ran, if this check found out."""
