"""The steps of a timed call, in order. They do not depend on a device, so that they can be tested with fakes.

    flush    removes data of earlier work from the caches
    block    GPU only: a blocking kernel occupies every SM until the host releases it. All later steps are queued
             before the GPU reaches them, so launch gaps do not count, and work on a side stream cannot start before
             the clock does
    start    first time stamp
    work     the call: `forward`, its backward if it has one, and the conversion of outputs with another layout or
             device. Between the passes, `mark` takes a time stamp
    stop     second time stamp
    finish   untimed parts of the call (the copy of the outputs into the judge's buffers), on the same stream
    release  ends the blocking kernel
    drain    waits for the device
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

Output = TypeVar("Output")


@dataclass(frozen=True)
class Sample:
    """The times of one call."""

    device_ms: float
    """Time between the two time stamps, in ms."""
    drain_ms: float
    """How long the device was still busy after the host had queued everything, in ms."""
    blocked: bool
    """Whether everything was queued behind the blocking kernel before the clock started, so that the time contains no
    launch gap. False if no blocking kernel was wanted, or if it reached its limit because `work` waited for the device.
    """
    forward_ms: float | None = None
    """Time from the first time stamp to the one between forward and backward, in ms. None for a call with one pass."""


class Clock(Protocol):
    """The operations that a device provides for timing calls.

    - `touch` reads from each page of a memory range (aligned to 4 bytes), so that no timed call pays for its address
      translation. It is called before `flush`.
    - `null` queues an empty kernel with the given number of blocks per SM (0: a single block).
    - `mark` takes a time stamp between `start` and `stop`, where forward has ended and backward begins.
    - `copy` copies bytes from one address to another, in stream order. `finish` uses it.
    - `done` sets a flag when all work queued before it is complete.
    """

    def touch(self, address: int, size: int) -> None: ...
    def null(self, blocks_an_sm: int) -> None: ...
    def flush(self) -> None: ...
    def block(self, limit_ms: float) -> None: ...
    def start(self) -> None: ...
    def mark(self) -> None: ...
    def stop(self) -> None: ...
    def copy(self, target: int, source: int, size: int) -> None: ...
    def done(self) -> None: ...
    def release(self) -> None: ...
    def drain(self) -> Sample: ...


def timed_call(
    clock: Clock, work: Callable[[], Output], finish: Callable[[Output], None], blocking_limit_ms: float
) -> tuple[Output, Sample]:
    """Runs `work` and `finish` between the clock's steps and returns the output of `work` and the sample.

    A limit of 0 ms means no blocking kernel. If `work` or `finish` raises, the blocking kernel is released before the
    exception propagates, so that nothing waits for its limit.
    """
    clock.flush()
    if blocking_limit_ms > 0:
        clock.block(blocking_limit_ms)
    try:
        clock.start()
        output = work()
        clock.stop()
        finish(output)
    except BaseException:
        clock.release()
        raise
    clock.release()
    return output, clock.drain()
