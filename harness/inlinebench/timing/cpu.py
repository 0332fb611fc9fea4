"""The clock of the CPU, where a call is over when it returns."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove
from time import perf_counter_ns

from inlinebench.timing.call import Sample

NANOSECONDS_PER_MS = 1e6


class CpuClock:
    """`time.perf_counter_ns`, bound when this module was imported: before any solution could replace it."""

    def __init__(self) -> None:
        self._begin = self._end = 0

    def touch(self, address: int, size: int) -> None:
        """Nothing, as below."""

    def null(self, blocks_an_sm: int) -> None:
        """Nothing, as below."""

    def flush(self) -> None:
        """Nothing: no speedup is claimed on the CPU, so its caches stay as they are."""

    def sweep(self) -> None:
        """Nothing, as above."""

    def block(self, limit_ms: float) -> None:
        """Nothing to hold."""

    def start(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self._begin = now()

    def stop(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self._end = now()

    def copy(self, target: int, source: int, size: int, move: Callable[..., object] = memmove) -> None:
        move(target, source, size)

    def done(self) -> None:
        """Nothing is ever under way."""

    def release(self) -> None:
        """Nothing is held."""

    def drain(self) -> Sample:
        return Sample((self._end - self._begin) / NANOSECONDS_PER_MS, 0.0, blocked=True)
