"""The clock for the CPU, where a call has finished when it returns."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove
from time import perf_counter_ns

from inlinebench.timing.call import Sample

NANOSECONDS_PER_MS = 1e6


class CpuClock:
    """Times calls with `time.perf_counter_ns`, bound at import so that a solution cannot replace it."""

    def __init__(self) -> None:
        self._begin = self._end = 0
        self._middle: int | None = None

    def touch(self, address: int, size: int) -> None:
        """Does nothing."""

    def null(self, blocks_an_sm: int) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing: no speedup is reported on the CPU, so its caches need no flush."""

    def block(self, limit_ms: float) -> None:
        """Does nothing: work is not queued on the CPU."""

    def start(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self._middle, self._begin = None, now()

    def mark(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self._middle = now()

    def stop(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self._end = now()

    def copy(self, target: int, source: int, size: int, move: Callable[..., object] = memmove) -> None:
        move(target, source, size)

    def done(self) -> None:
        """Does nothing."""

    def release(self) -> None:
        """Does nothing."""

    def drain(self) -> Sample:
        forward = None if self._middle is None else (self._middle - self._begin) / NANOSECONDS_PER_MS
        return Sample((self._end - self._begin) / NANOSECONDS_PER_MS, 0.0, blocked=True, forward_ms=forward)
