"""Reads the profile of a call: which kernels ran, and where they come from.

The profile comes from the candidate's process, so a solution could hide work from it, or forge where a kernel comes
from. It is no evidence about times: those that leave out hidden work are too short by the outside clock.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench.process.replies import ProvenanceReply
from inlinebench.results.result import KernelShare, PassKernels
from inlinebench.results.times import PASSES
from inlinebench.timing.trace import HARNESS, LONGEST_NAME, Activity

OWN, TRITON, LIBRARY, COPY = "own", "triton", "library", "copy"
"""Origins of GPU activities: kernels of the solution's CUDA source, built or compiled at run time; Triton functions of
its files; kernels of PyTorch and other libraries; and copies."""

SLACK_US = 5.0
"""The blocks of the blocking kernel end one after the other, so a kernel on a side stream may begin this long before
the last of them ends."""
HOLD, STOP = "inlinebench_block", "inlinebench_stop"
"""The blocking kernel, and the kernel that runs at the second time stamp."""
BETWEEN = "inlinebench_null"
"""The kernel between forward and backward of a profiled call."""
COPIES = ("Memcpy", "Memset")
MOST_SHOWN = 8
"""Kernels of a call that a result lists."""

_MANGLED = re.compile(rb"_Z[\w$.]+")
_FROM_PYTHON = re.compile(r"(?:.*/)?(?:_ctypes|libffi|(?:lib)?python)[^/]*|.*/cuda/bindings/.*")
"""Matches what launches a kernel if Python code calls the CUDA driver: ctypes (a part of Python's own library in some
builds) and cuda-python. PyTorch's `torch.cuda._compile_kernel` uses ctypes."""
_FROM_LIBRARY = re.compile(r"(?:.*/)?(?:libtorch|libcu)[^/]*")
"""Matches PyTorch's and NVIDIA's libraries."""


class BuiltKernels:
    """The kernels in the libraries that were built for a solution."""

    def __init__(self, libraries: Iterable[Path]) -> None:
        self.libraries = tuple(libraries)
        self._contents = [library.read_bytes() for library in self.libraries]
        self._mangled = {name for data in self._contents for name in _MANGLED.findall(data)}

    def __contains__(self, name: str) -> bool:
        """Whether a library contains a kernel of this name: its mangled name, or the name itself if it is not C++."""
        # A library has thousands of names, most of them torch's. Mangling keeps the base name, so only names that
        # contain it are demangled.
        base = _base(name)
        contained = base.encode() if base.isidentifier() and "operator" not in name else b""
        if any(_demangle(mangled)[:LONGEST_NAME] == name for mangled in self._mangled if contained in mangled):
            return True
        return any(b"\0" + name.encode() + b"\0" in data for data in self._contents)


class Origins:
    """Finds the origin of a kernel by what it came from, never by a name in a text.

    Args:
        built: the kernels that were built for the solution. They are its own.
        provenance: what the candidate reports about kernels that were compiled at run time. Those that Triton compiled
            from functions of the solution's files are its own, and those that its code launches through the CUDA
            driver. What PyTorch's and NVIDIA's libraries compile at run time is launched by them, and is theirs.
    """

    def __init__(self, built: BuiltKernels, provenance: ProvenanceReply) -> None:
        self._built, self._triton = built, provenance.triton
        self._libraries = {*map(str, built.libraries), *provenance.libraries}
        self._launched_by: dict[str, set[str]] = {}
        for launch in provenance.launches:
            self._launched_by.setdefault(launch.kernel, set()).add(launch.library)

    def of(self, name: str) -> str:
        """Returns the origin of an activity, by its name."""
        if name.startswith(COPIES):
            return COPY
        if name in self._built:
            return OWN
        launched_by = self._launched_by.get(name, set())
        if any(map(_FROM_LIBRARY.fullmatch, launched_by)):
            return LIBRARY  # even if Triton has compiled a function of this name
        if name in self._triton:
            return TRITON
        return OWN if launched_by and all(map(self._is_own, launched_by)) else LIBRARY

    def _is_own(self, file: str) -> bool:
        """Whether code of the solution's launches what this file launches: a library of its own, or Python."""
        return file in self._libraries or bool(_FROM_PYTHON.fullmatch(file))


@dataclass(frozen=True)
class Profile:
    """The GPU activities of one call, between the end of the blocking kernel and the second time stamp."""

    own_share: float
    """The share of the activities' total time that the solution's own kernels take."""
    top: tuple[KernelShare, ...]
    """The activities that take the most time."""
    library: dict[str, float]
    """The time in ms of each library kernel, by name."""
    passes: tuple[PassKernels, ...] = ()
    """How the time is split between forward and backward, if the call has a backward."""
    activities: int = 0
    """The number of activities."""
    idle_ms: float = 0.0
    """The time in ms between the first and the last activity in which none ran."""


def read_profile(activities: Sequence[Activity], origin: Callable[[str], str]) -> Profile | None:
    """Returns the profile of one call, or None if the activities lack the clock's own kernels.

    `origin` returns the origin of an activity by its name.
    """
    clock = _clock(activities)
    if clock is None:
        return None
    block, stop = clock
    foreign = [activity for activity in activities if not activity.name.startswith(HARNESS)]
    within = [activity for activity in foreign if block.end_us - SLACK_US <= activity.begin_us < stop.begin_us]
    named: dict[str, list[Activity]] = {}
    for activity in within:
        named.setdefault(activity.name, []).append(activity)
    durations = {name: sum(map(_ms, each)) for name, each in named.items()}
    total = sum(durations.values())
    ranked = sorted(durations.items(), key=lambda pair: -pair[1])
    own = sum(ms for name, ms in ranked if origin(name) in (OWN, TRITON))
    return Profile(
        own_share=min(1.0, own / total) if total else 0.0,
        top=tuple(KernelShare(name, origin(name), ms, ms / total, len(named[name]), max(named[name], key=_ms).launched)
                  for name, ms in ranked[:MOST_SHOWN] if total),
        library={name: ms for name, ms in ranked if origin(name) == LIBRARY},
        passes=_passes(activities, within, origin),
        activities=len(within),
        idle_ms=_idle_ms(within),
    )


def _ms(activity: Activity) -> float:
    return (activity.end_us - activity.begin_us) / 1e3


def _idle_ms(activities: Sequence[Activity]) -> float:
    """Returns the time in ms between the first and the last of some activities in which none ran."""
    idle, busy_until = 0.0, None
    for each in sorted(activities, key=lambda each: each.begin_us):
        if busy_until is not None:
            idle += max(0.0, each.begin_us - busy_until) / 1e3
        busy_until = each.end_us if busy_until is None else max(busy_until, each.end_us)
    return idle


def _passes(
    activities: Sequence[Activity], within: Sequence[Activity], origin: Callable[[str], str]
) -> tuple[PassKernels, ...]:
    """Splits the activities within a call at the kernel between its passes."""
    block, stop = _clock(activities) or (None, None)
    marks = [each.begin_us for each in activities
             if block and stop and each.name == BETWEEN and block.end_us <= each.begin_us < stop.begin_us]
    if not marks:
        return ()
    found = []
    for name, is_second in zip(PASSES, (False, True), strict=True):
        times = [(each.name, _ms(each)) for each in within if (each.begin_us >= marks[0]) == is_second]
        total, own = sum(ms for _, ms in times), sum(ms for each, ms in times if origin(each) in (OWN, TRITON))
        found.append(PassKernels(name, total, min(1.0, own / total) if total else 0.0))
    return tuple(found)


def has_clock(activities: Sequence[Activity]) -> bool:
    """Whether the activities of a call contain the clock's own kernels, as every profile that is not empty does."""
    return _clock(activities) is not None


def _clock(activities: Sequence[Activity]) -> tuple[Activity, Activity] | None:
    """Returns the blocking kernel and the kernel at the second time stamp, or None if one of them is missing."""
    block = next((activity for activity in reversed(activities) if activity.name == HOLD), None)
    stop = next((activity for activity in activities if block and activity.name == STOP
                 and activity.begin_us >= block.end_us), None)
    return None if block is None or stop is None else (block, stop)


def _base(name: str) -> str:
    """Returns the name without return type, namespace, template and parameters: `softmax` for `void
    (anonymous namespace)::softmax<float, 4>(float const*)`."""
    plain = re.sub(r"\(anonymous namespace\)::", "", name)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rpartition("::")[2].rpartition(" ")[2]


_runtime = ctypes.CDLL("libstdc++.so.6")
_runtime.__cxa_demangle.restype = ctypes.c_void_p
_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


def _demangle(name: bytes) -> str:
    """Demangles a C++ name with the function that the profiler uses. Returns other names unchanged."""
    status = ctypes.c_int()
    found = _runtime.__cxa_demangle(name, None, None, ctypes.byref(status))
    if not found:
        return name.decode(errors="replace")
    try:
        return ctypes.string_at(found).decode(errors="replace")
    finally:
        _libc.free(found)
