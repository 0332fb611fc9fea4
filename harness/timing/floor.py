"""The least that some work must take on a device, measured there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from harness.timing.call import Clock, timed_call

REPEATS = 5
EMPTY_CALLS = 15
HOLD_MS = 50.0
AROUND = 8
FULL_CACHES = 8
"""A write of so many L2 sizes goes at the speed of memory."""


def empty_ms(clock: Clock) -> float:
    """What a pair of time stamps with nothing between them shows, in ms: every sample holds as much."""
    return median(timed_call(clock, lambda: None, lambda _: None, HOLD_MS)[1].device_ms for _ in range(EMPTY_CALLS))


def least_write_ms(clock: Clock, device: torch.device, size: int) -> float:
    """The time in ms that writing so many bytes takes at least: what doesn't fit into L2 has to go to memory.

    0 where L2 could hold all of it.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size
    if size <= cached:
        return 0.0
    target = torch.empty(size, dtype=torch.uint8, device=device)
    return _best(clock, lambda: target.fill_(1)) * (1 - cached / size)


@dataclass(frozen=True)
class Surroundings:
    """What a batch of calls costs beside the calls, in ms a call.

    `around_ms` is the time of sweep, writing the outputs and copying them away; `writing_ms` is the writing by itself,
    as times of calls are reported, and `copy_ms` the copying by itself, as the clock shows it.
    `left_ms` bounds how long a call's traces in L2 can slow down what comes after it: lines that it wrote beside its
    outputs have to go to memory some time.
    """

    around_ms: float
    writing_ms: float
    copy_ms: float
    left_ms: float


def surroundings(clock: Clock, device: torch.device, size: int, launch_ms: float) -> Surroundings:
    """Measured for outputs of so many bytes, on a clock that adds so many ms to a call.

    The writing stands for the work, whose traces in L2 are the same.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size
    written = torch.empty(max(1, size), dtype=torch.uint8, device=device)
    copied = torch.empty_like(written)
    full = torch.empty(FULL_CACHES * cached, dtype=torch.uint8, device=device)
    left = max(0, cached - size) / full.numel() * _best(clock, lambda: full.fill_(1))
    around = min(_around_ms(clock, written, copied) for _ in range(REPEATS))
    copying = _best(clock, lambda: clock.copy(copied.data_ptr(), written.data_ptr(), copied.numel()))
    writing = _best(clock, lambda: written.fill_(1)) - launch_ms
    return Surroundings(around, writing, copying, left)


def _around_ms(clock: Clock, written: torch.Tensor, copied: torch.Tensor) -> float:
    """The steps of a held batch, with writing for work; its own time stamps lie around them."""
    begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    clock.flush()
    clock.hold(HOLD_MS)
    begin.record()
    for _ in range(AROUND):
        clock.sweep()
        clock.start()
        written.fill_(1)
        clock.stop()
        clock.copy(copied.data_ptr(), written.data_ptr(), copied.numel())
    end.record()
    clock.release()
    clock.drain()
    return float(begin.elapsed_time(end)) / AROUND


def _best(clock: Clock, work: Callable[[], object]) -> float:
    return min(timed_call(clock, work, lambda _: None, HOLD_MS)[1].device_ms for _ in range(REPEATS))
