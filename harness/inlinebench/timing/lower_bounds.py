"""The least that some work must take on a device, measured there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

import torch

from inlinebench.timing.call import Clock, timed_call

REPEATS = 5
EMPTY_CALLS = 15
BLOCKING_MS = 50.0
AROUND, STEPS = 8, 4
"""Calls whose surroundings are measured, and the steps of each beside its copies."""
QUEUED = 500
"""Steps that surely fit into a device's queue while it is held."""
APART = 256
"""The parts of a copy begin at multiples of so many bytes, as tensors do."""
FULL_CACHES = 8
"""A write of so many L2 sizes goes at the speed of memory."""


def empty_ms(clock: Clock) -> float:
    """What a pair of time stamps with nothing between them shows, in ms: every sample holds as much."""
    return median(timed_call(clock, lambda: None, lambda _: None, BLOCKING_MS)[1].device_ms for _ in range(EMPTY_CALLS))


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


def surroundings(clock: Clock, device: torch.device, sizes: Sequence[int], launch_ms: float) -> Surroundings:
    """Measured for tensors of so many bytes each, on a clock that adds so many ms to a call.

    Each of them is copied away by itself, as those of a call are. The writing stands for the work, whose traces in L2
    are the same.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size
    copies = Copies(clock, device, sizes)
    written = copies.source[: max(1, sum(sizes))]
    full = torch.empty(FULL_CACHES * cached, dtype=torch.uint8, device=device)
    left = max(0, cached - sum(sizes)) / full.numel() * _best(clock, lambda: full.fill_(1))
    around = min(_around_ms(clock, written, copies) for _ in range(REPEATS))
    writing = _best(clock, lambda: written.fill_(1)) - launch_ms
    return Surroundings(around, writing, _best(clock, copies.queue), left)


class Copies:
    """Copies of tensors of so many bytes each, one by one; `source` holds them all."""

    def __init__(self, clock: Clock, device: torch.device, sizes: Sequence[int]) -> None:
        self._clock, self._sizes = clock, sizes
        *self._begins, end = accumulate((-(-size // APART) * APART for size in sizes), initial=0)
        self.source = torch.empty(max(1, end), dtype=torch.uint8, device=device)
        self._target = torch.empty_like(self.source)

    def __len__(self) -> int:
        return len(self._sizes)

    def queue(self) -> None:
        """Has the clock make all of them, in the order of the work."""
        for begin, size in zip(self._begins, self._sizes, strict=True):
            self._clock.copy(self._target.data_ptr() + begin, self.source.data_ptr() + begin, size)


def _around_ms(clock: Clock, written: torch.Tensor, copies: Copies) -> float:
    """The steps of a held batch, with writing for work; its own time stamps lie around them."""
    begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    calls = max(1, min(AROUND, QUEUED // (len(copies) + STEPS)))
    clock.flush()
    clock.block(BLOCKING_MS)
    begin.record()
    for _ in range(calls):
        clock.sweep()
        clock.start()
        written.fill_(1)
        clock.stop()
        copies.queue()
    end.record()
    clock.release()
    clock.drain()
    return float(begin.elapsed_time(end)) / calls


def _best(clock: Clock, work: Callable[[], object]) -> float:
    return min(timed_call(clock, work, lambda _: None, BLOCKING_MS)[1].device_ms for _ in range(REPEATS))
