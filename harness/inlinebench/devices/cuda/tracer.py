"""Traces the GPU's activity with CUPTI, or with PyTorch's profiler where CUPTI's headers are missing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from inlinebench.results.launches import Launched
from inlinebench.timing.trace import (
    LONGEST_NAME,
    LONGEST_PATH,
    MOST_KERNELS,
    Activity,
    Launch,
    TraceError,
    Tracer,
    in_microseconds,
    in_order,
)

Value = TypeVar("Value")

class CuptiTracer:
    """Traces with CUPTI through `gpu_trace.cpp`. A process has one instance; torch must be loaded.

    The constructor and each trace raise TraceError if CUPTI is missing or fails.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.trace_get.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
        self._library.launches_get.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
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
        return value, in_order(in_microseconds([self._get(index) for index in range(found.value)]))

    def launches(self, work: Callable[[], Value]) -> tuple[Value, list[Launch]]:
        """Runs `work`. Returns its value and which library launches each kernel, without repetitions, at most 1,000.

        Kernels of a CUDA graph are launched when the graph is captured. The list is empty if something else in the
        process has subscribed to CUPTI, because CUPTI allows one subscriber.
        """
        if self._library.launches_begin():
            return work(), []
        found = ctypes.c_size_t()
        try:
            value = work()
        finally:
            self._library.launches_end(ctypes.byref(found))
        return value, [self._launch(index) for index in range(min(found.value, MOST_KERNELS))]

    def _launch(self, index: int) -> Launch:
        name, file = (ctypes.create_string_buffer(LONGEST_PATH) for _ in range(2))
        self._library.launches_get(index, name, file, LONGEST_PATH)
        return Launch(name.value.decode(errors="replace")[:LONGEST_NAME], file.value.decode(errors="replace"))

    def _get(self, index: int) -> tuple[str, int, int, Launched | None]:
        name = ctypes.create_string_buffer(LONGEST_NAME + 1)
        numbers = (ctypes.c_uint64 * 6)()
        self._library.trace_get(index, name, LONGEST_NAME + 1, numbers)
        begin, end, *launched = numbers
        return name.value.decode(errors="replace"), begin, end, Launched(*launched) if launched[0] else None

    def _check(self, status: int) -> None:
        if status:
            raise TraceError("CUPTI was not found" if status == -1 else f"CUPTI failed with status {status}")


def torch_tracer(work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
    """Traces with PyTorch's profiler, which takes some seconds to start.

    The list is empty if CUPTI cannot be used; the profiler then says so on stderr.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        value = work()
    return value, in_order([
        Activity(event.name[:LONGEST_NAME], event.time_range.start, event.time_range.end)
        for event in profiler.events() or () if event.device_type == DeviceType.CUDA
    ])


class LateTracer:
    """A CuptiTracer that is opened at the first use, because opening is slow and few runs need it. Raises TraceError
    as CuptiTracer does."""

    def __init__(self, library: Path) -> None:
        self._library = library
        self._tracer: CuptiTracer | None = None

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        if self._tracer is None:
            self._tracer = CuptiTracer(self._library)
        return self._tracer(work)


def open_tracer(library: Path | str | None, *, late: bool = False) -> Tracer:
    """Returns a CUPTI tracer, or PyTorch's profiler if `library` is None. With `late`, CUPTI is opened at first use."""
    if library is None:
        return torch_tracer
    return LateTracer(Path(library)) if late else CuptiTracer(Path(library))
