"""Which kernels ran, and when: the GPU's activity during some work, as CUPTI tells it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

Value = TypeVar("Value")

MOST_ACTIVITIES = 20_000
LONGEST_NAME = 400


@dataclass(frozen=True)
class Activity:
    """A kernel, copy or fill on the GPU: its name as C++ writes it (cut at 400 characters), begin and end in µs, from
    some moment before."""

    name: str
    begin_us: float
    end_us: float


class TraceError(RuntimeError):
    """CUPTI refused, or lost some of what it saw."""


class Tracer(Protocol):
    """Traces some work that waits for the GPU itself: gives its value, and the GPU's activities in order of their
    begins, at most the first 20,000."""

    def __call__(self, work: Callable[[], Value], /) -> tuple[Value, list[Activity]]: ...


class CuptiTracer:
    """Asks CUPTI through `gpu_trace.cpp`. One instance a process; torch is to be loaded.

    Raises TraceError if CUPTI isn't there or refuses, as each trace does.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.trace_get.argtypes = [
            ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p
        ]
        assert torch.version.cuda is not None
        major = torch.version.cuda.partition(".")[0]
        self._check(self._library.trace_open(f"libcupti.so.{major}".encode()))

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        self._check(self._library.trace_begin())
        found, dropped = ctypes.c_size_t(), ctypes.c_size_t()
        try:
            value = work()
        finally:
            status = self._library.trace_end(ctypes.byref(found), ctypes.byref(dropped))
        self._check(status)
        if dropped.value:
            raise TraceError(f"CUPTI lost {dropped.value} activities")
        return value, _in_order(in_microseconds([self._get(index) for index in range(found.value)]))

    def _get(self, index: int) -> tuple[str, int, int]:
        name = ctypes.create_string_buffer(LONGEST_NAME + 1)
        begin, end = ctypes.c_uint64(), ctypes.c_uint64()
        self._library.trace_get(index, name, LONGEST_NAME + 1, ctypes.byref(begin), ctypes.byref(end))
        return name.value.decode(errors="replace"), begin.value, end.value

    def _check(self, status: int) -> None:
        if status:
            raise TraceError("there is no CUPTI here" if status == -1 else f"CUPTI gave status {status}")


def torch_tracer(work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
    """Asks CUPTI through PyTorch's profiler, which takes some seconds to start.

    Empty where CUPTI can't be used, which the profiler says on stderr.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        value = work()
    return value, _in_order([
        Activity(event.name[:LONGEST_NAME], event.time_range.start, event.time_range.end)
        for event in profiler.events() or () if event.device_type == DeviceType.CUDA
    ])


class LateTracer:
    """CUPTI's tracer, opened when it is first used: that takes a while, and few need it. Raises as it does."""

    def __init__(self, library: Path) -> None:
        self._library = library
        self._tracer: CuptiTracer | None = None

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        if self._tracer is None:
            self._tracer = CuptiTracer(self._library)
        return self._tracer(work)


def open_tracer(library: Path | str | None, *, late: bool = False) -> Tracer:
    """CUPTI's tracer where its library could be built, else PyTorch's profiler; opened now or, if `late`, when it is
    needed."""
    if library is None:
        return torch_tracer
    return LateTracer(Path(library)) if late else CuptiTracer(Path(library))


def in_microseconds(found: Sequence[tuple[str, int, int]]) -> list[Activity]:
    """Of names, begins and ends in ns, which are too large for a float to tell one µs from the next by more than
    quarters: counted from the first begin."""
    first = min((begin for _, begin, _ in found), default=0)
    return [Activity(name, (begin - first) / 1e3, (end - first) / 1e3) for name, begin, end in found]


def _in_order(activities: list[Activity]) -> list[Activity]:
    return sorted(activities, key=lambda activity: activity.begin_us)[:MOST_ACTIVITIES]
