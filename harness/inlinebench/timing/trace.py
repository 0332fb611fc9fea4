"""What a trace of some work records: which kernels ran on the device, when, and which libraries launched them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from inlinebench.results.launches import Launched

Value = TypeVar("Value")
Traced = Literal["nothing", "activities", "launches"]
"""What a call is traced for: the GPU's activities, or which library launches each kernel."""

HARNESS = "inlinebench_"
"""How the names of the harness's own kernels begin. Those of the clock delimit a call."""
MOST_ACTIVITIES = 20_000
MOST_KERNELS = 1_000
"""The most kernels of different names, or launched by different libraries, that are listed."""
LONGEST_NAME, LONGEST_PATH = 400, 4096


@dataclass(frozen=True)
class Activity:
    """A kernel, copy or fill on the GPU."""

    name: str
    """The demangled name, cut at 400 characters."""
    begin_us: float
    """Begin in µs since some earlier moment."""
    end_us: float
    """End in µs since the same moment."""
    launched: Launched | None = None
    """How a kernel was launched; None for copies and fills, and where the tracer does not tell."""


@dataclass(frozen=True)
class Launch:
    """A library that launches a kernel."""

    kernel: str
    """The demangled name of the kernel, cut at 400 characters."""
    library: str
    """The path of the library."""


class TraceError(RuntimeError):
    """The tracer failed or lost activities."""


class Tracer(Protocol):
    """Runs `work`, which must wait for the GPU itself. Returns its value and the GPU's activities in order of their
    begins, at most 20,000."""

    def __call__(self, work: Callable[[], Value], /) -> tuple[Value, list[Activity]]: ...


def in_microseconds(found: Sequence[tuple[str, int, int, Launched | None]]) -> list[Activity]:
    """Converts names, begins and ends in ns, and launches, to activities in µs since the first begin.

    The absolute times are so large that a float in µs would resolve only a quarter of a microsecond.
    """
    first = min((begin for _, begin, _, _ in found), default=0)
    return [Activity(name, (begin - first) / 1e3, (end - first) / 1e3, launched)
            for name, begin, end, launched in found]


def in_order(activities: list[Activity]) -> list[Activity]:
    """Returns the activities in order of their begins: the harness's own, and the first others, at most 20,000."""
    first = sorted(activities, key=lambda each: (not each.name.startswith(HARNESS), each.begin_us))[:MOST_ACTIVITIES]
    return sorted(first, key=lambda each: each.begin_us)


def no_tracer(work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
    """Runs `work` and records nothing."""
    return work(), []
