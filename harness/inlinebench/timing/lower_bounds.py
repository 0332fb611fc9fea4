"""Measures lower bounds on a device: the least time of writes, and the cost of a batch of calls apart from its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

import torch

from inlinebench.timing.call import Clock, timed_call
from inlinebench.timing.peaks import Peaks

REPEATS = 5
EMPTY_CALLS = 15
BLOCKING_MS = 50.0
AROUND, STEPS = 8, 4
"""Calls in the batch that `surroundings` measures, and the queued steps of each call in addition to its copies."""
QUEUED = 500
"""Steps that fit into a device's queue behind a blocking kernel."""
APART = 256
"""Alignment in bytes of the parts of a copy, like that of tensors."""
TRANSFER_MARGIN = 0.95
"""The share of the least time of a transfer that a time must reach."""
FULL_CACHES = 8
"""A write of this many L2 sizes runs at the speed of memory."""


def empty_ms(clock: Clock) -> float:
    """Returns the time between two time stamps with nothing between them, in ms. Every sample includes it."""
    return median(timed_call(clock, lambda: None, lambda _: None, BLOCKING_MS)[1].device_ms for _ in range(EMPTY_CALLS))


def least_write_ms(clock: Clock, device: torch.device, size: int) -> float:
    """Returns the least time in ms of writing `size` bytes: the part that does not fit into L2 has to go to memory.

    0 if L2 can hold all of it.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size
    if size <= cached:
        return 0.0
    target = torch.empty(size, dtype=torch.uint8, device=device)
    return _best(clock, lambda: target.fill_(1)) * (1 - cached / size)


def least_transfer_ms(size: int, cached: int, peaks: Peaks) -> float:
    """Returns the least plausible time in ms of reading and writing `size` bytes in all, `cached` of them in L2.

    Kernels that mostly read are a little faster than copies, so the larger of the two measured bandwidths counts.
    """
    return TRANSFER_MARGIN * max(0, size - cached) / max(peaks.read_bytes_s, peaks.copy_bytes_s) * 1e3


@dataclass(frozen=True)
class Surroundings:
    """The cost of a batch of calls without a blocking kernel apart from its work, in ms per call."""

    around_ms: float
    """Sweep, writing the outputs and copying them away."""
    writing_ms: float
    """Writing the outputs alone, timed as a call is."""
    left_ms: float
    """Upper bound of the slowdown of later work by dirty lines in L2 that a call left in addition to its outputs: they
    are written back to memory later."""


@dataclass(frozen=True)
class BatchCosts:
    """The cost of a batch of calls behind a blocking kernel apart from the calls, in ms by the judge's stamps."""

    most: int
    """The most calls of a batch."""
    one_ms: float
    """The cost of a batch of one call: two changes of the process on the GPU, and copies of inputs and outputs."""
    more_ms: float
    """What each further call adds."""
    spread_ms: float
    """By how much the cost of a batch scatters."""
    left_ms: float
    """As `Surroundings.left_ms`."""

    def of(self, calls: int) -> float:
        """Returns the cost of a batch of this many calls."""
        return self.one_ms + (calls - 1) * self.more_ms


def surroundings(clock: Clock, device: torch.device, sizes: Sequence[int], launch_ms: float) -> Surroundings:
    """Measures the cost for tensors of the given sizes in bytes. `launch_ms` is the overhead of the clock for a call.

    Each tensor is copied separately, as the outputs of a call are. Writing the tensors stands in for the work, because
    it leaves the same traces in L2.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size
    copies = Copies(clock, device, sizes)
    written = copies.source[: max(1, sum(sizes))]
    full = torch.empty(FULL_CACHES * cached, dtype=torch.uint8, device=device)
    left = max(0, cached - sum(sizes)) / full.numel() * _best(clock, lambda: full.fill_(1))
    around = min(_around_ms(clock, written, copies) for _ in range(REPEATS))
    writing = _best(clock, lambda: written.fill_(1)) - launch_ms
    return Surroundings(around, writing, left)


class Copies:
    """Separate copies of tensors of the given sizes in bytes. `source` holds all tensors."""

    def __init__(self, clock: Clock, device: torch.device, sizes: Sequence[int]) -> None:
        self._clock, self._sizes = clock, sizes
        *self._begins, end = accumulate((-(-size // APART) * APART for size in sizes), initial=0)
        self.source = torch.empty(max(1, end), dtype=torch.uint8, device=device)
        self._target = torch.empty_like(self.source)

    def __len__(self) -> int:
        return len(self._sizes)

    def queue(self) -> None:
        """Queues all copies, in stream order."""
        for begin, size in zip(self._begins, self._sizes, strict=True):
            self._clock.copy(self._target.data_ptr() + begin, self.source.data_ptr() + begin, size)


def _around_ms(clock: Clock, written: torch.Tensor, copies: Copies) -> float:
    """Times the steps of a blocked batch, with writing as the work and its own time stamps around them."""
    begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    calls = max(1, min(AROUND, QUEUED // (len(copies) + STEPS)))
    clock.flush()
    clock.block(BLOCKING_MS)
    clock.start()
    begin.record()
    for _ in range(calls):
        clock.sweep()
        written.fill_(1)
        copies.queue()
    end.record()
    clock.stop()
    clock.release()
    clock.drain()
    return float(begin.elapsed_time(end)) / calls


def _best(clock: Clock, work: Callable[[], object]) -> float:
    return min(timed_call(clock, work, lambda _: None, BLOCKING_MS)[1].device_ms for _ in range(REPEATS))
