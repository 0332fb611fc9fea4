"""Whose kernels a call ran, and whether they ran within the clock: what a profile of it says.

A candidate makes the profile, so nothing here convicts by what is in it alone and acquits by it: a solution that hides
its work from the profiler has to report times that the outside clock then finds too short.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inlinebench.records.result import KernelShare
from inlinebench.timing.profile import LONGEST_NAME, Activity

OWN, TRITON, LIBRARY, COPY = "own", "triton", "library", "copy"
"""Origins of what a GPU does: the solution's libraries, kernels in its file, PyTorch's and NVIDIA's kernels, copies."""

SLACK_US = 5.0
"""Blocks of the hold end one after the other, so a side stream's kernel may begin this much before its last."""
HARNESS = "inlinebench_"
HOLD, STOP = "inlinebench_block", "inlinebench_stop"
COPIES = ("Memcpy", "Memset")
MOST_SHOWN = 8

_MANGLED = re.compile(rb"_Z[\w$.]+")
_DEFINED = re.compile(
    r"@(?:\w+\.)*jit\b[^\n]*\n(?:\s*@[^\n]*\n)*\s*def\s+(\w+)"
    r"|__global__(?:\s+__launch_bounds__\s*\([^)]*\)|[^;{(])*?(\w+)\s*\("
)
"""Kernels that a Python file defines: Triton functions, and CUDA source that it compiles at run time."""


class Origins:
    """Tells where a kernel comes from, by the libraries that a solution had built and by the text of its file."""

    def __init__(self, libraries: Iterable[Path], text: str) -> None:
        self._contents = [library.read_bytes() for library in libraries]
        self._mangled = {name for data in self._contents for name in _MANGLED.findall(data)}
        self._defined = {name for match in _DEFINED.findall(text) for name in match if name}

    def of(self, name: str) -> str:
        """The origin of an activity."""
        if name.startswith(COPIES):
            return COPY
        if self._has(name) or any(b"\0" + name.encode() + b"\0" in data for data in self._contents):
            return OWN
        return TRITON if _base(name) in self._defined else LIBRARY

    def _has(self, name: str) -> bool:
        """Whether a library names this kernel. A library has thousands of names, most of them torch's; to be read are
        those that hold the kernel's own, which mangling leaves as it is."""
        base = _base(name)
        holds = base.encode() if base.isidentifier() and "operator" not in name else b""
        return any(_demangle(mangled)[:LONGEST_NAME] == name for mangled in self._mangled if holds in mangled)


@dataclass(frozen=True)
class Profile:
    """What one call ran between hold and stop. Times in ms; `busy_ms` is how long anything ran.

    `early` and `late` name a kernel that ran outside; empty if none did. `library` are the names of library kernels.
    """

    busy_ms: float
    own_share: float
    top: tuple[KernelShare, ...]
    library: dict[str, float]
    early: str
    late: str


def read_profile(activities: Sequence[Activity], origin: Callable[[str], str]) -> Profile | None:
    """The profile of one call; None where the activities don't show the clock's own kernels."""
    block = next((activity for activity in reversed(activities) if activity.name == HOLD), None)
    stop = next((activity for activity in activities if block and activity.name == STOP
                 and activity.begin_us >= block.end_us), None)
    if block is None or stop is None:
        return None
    foreign = [activity for activity in activities if not activity.name.startswith(HARNESS)]
    kernels = [activity for activity in foreign if not activity.name.startswith(COPIES)]
    within = [activity for activity in foreign if block.end_us - SLACK_US <= activity.begin_us < stop.begin_us]
    early = [
        activity for activity in kernels if activity.begin_us < block.end_us - SLACK_US
        and (activity.begin_us >= block.begin_us or origin(activity.name) in (OWN, TRITON))
    ]
    late = [activity for activity in kernels if activity.begin_us >= stop.begin_us]
    durations: dict[str, float] = {}
    for activity in within:
        durations[activity.name] = durations.get(activity.name, 0.0) + (activity.end_us - activity.begin_us) / 1e3
    total = sum(durations.values())
    ranked = sorted(durations.items(), key=lambda pair: -pair[1])
    own = sum(ms for name, ms in ranked if origin(name) in (OWN, TRITON))
    return Profile(
        busy_ms=_union_us(within) / 1e3,
        own_share=min(1.0, own / total) if total else 0.0,
        top=tuple(KernelShare(name, origin(name), ms, ms / total) for name, ms in ranked[:MOST_SHOWN] if total),
        library={name: ms for name, ms in ranked if origin(name) == LIBRARY},
        early=early[0].name if early else "",
        late=late[0].name if late else "",
    )


def _union_us(activities: Iterable[Activity]) -> float:
    """How long at least one of the activities ran; they come in order of their begins."""
    covered, end = 0.0, float("-inf")
    for activity in activities:
        covered += max(0.0, activity.end_us - max(end, activity.begin_us))
        end = max(end, activity.end_us)
    return covered


def _base(name: str) -> str:
    """`softmax` of `void (anonymous namespace)::softmax<float, 4>(float const*)`."""
    plain = re.sub(r"\(anonymous namespace\)::", "", name)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rpartition("::")[2].rpartition(" ")[2]


_runtime = ctypes.CDLL("libstdc++.so.6")
_runtime.__cxa_demangle.restype = ctypes.c_void_p
_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


def _demangle(name: bytes) -> str:
    """A C++ name as the profiler writes it, by the function that it uses; what is no such name stays as it is."""
    status = ctypes.c_int()
    found = _runtime.__cxa_demangle(name, None, None, ctypes.byref(status))
    if not found:
        return name.decode(errors="replace")
    try:
        return ctypes.string_at(found).decode(errors="replace")
    finally:
        _libc.free(found)
