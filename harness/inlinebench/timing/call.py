"""One timed call: the order of its steps, apart from any device, so that it can be tested with fakes.

    flush   the caches are emptied of what earlier work left there
    hold    on a GPU, a kernel occupies every SM until it is released, so that all that follows is queued before the
            GPU reaches it: launch gaps don't count, and a side stream finds no SM to work on before the clock starts
    start   the first time stamp
    work    the call itself (`forward`, and the conversion of an output in another layout or on another device)
    stop    the second time stamp
    finish  what belongs to the call but not to its time (the copy into the judge's buffers), on the same stream
    release the GPU may go
    drain   wait for the device
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Output = TypeVar("Output")


@dataclass(frozen=True)
class Sample:
    """What one call took.

    `device_ms` lies between the two time stamps; `drain_ms` is how long the device was still busy when the host had
    queued everything; `held` says that everything was queued before the clock started, so that no launch gap is in
    the time. It is false where no hold was wanted, and where the hold ran out because `work` waited for the device.
    """

    device_ms: float
    drain_ms: float
    blocked: bool


class Clock(Protocol):
    """What a device must offer to have calls timed on it.

    `touch` reads something of each page of memory (aligned to 4 bytes), before a flush: that it was looked up counts in
    nobody's time.
    `null` queues a kernel that does nothing, of so many blocks for each SM (0: a single block).
    `sweep` is the part of `flush` that can be queued behind a hold. `copy` is for `finish`: bytes from one address to
    another, in the order of the work. `done` tells whoever reads the flags when all work before it is over.
    """

    def touch(self, address: int, size: int) -> None: ...
    def null(self, blocks_an_sm: int) -> None: ...
    def flush(self) -> None: ...
    def sweep(self) -> None: ...
    def block(self, limit_ms: float) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def copy(self, target: int, source: int, size: int) -> None: ...
    def done(self) -> None: ...
    def release(self) -> None: ...
    def drain(self) -> Sample: ...


def timed_call(
    clock: Clock, work: Callable[[], Output], finish: Callable[[Output], None], blocking_limit_ms: float
) -> tuple[Output, Sample]:
    """Runs `work` and then `finish` between the clock's steps; gives the output of `work` and the sample.

    A hold limit of 0 ms means no hold. If `work` or `finish` raises, the GPU is released before the exception leaves,
    so that nothing waits for the hold's limit.
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


def held_batch(
    clock: Clock, works: Sequence[Callable[[], Output]], finish: Callable[[int, Output], None],
    blocking_limit_ms: float, on_queued: Callable[[], None],
) -> Sample:
    """Queues several calls behind one hold, which somebody else releases after `on_queued`; waits for their end.

    The sample's `held` says that the hold was released before its limit; its times mean nothing.
    """
    clock.flush()
    if blocking_limit_ms > 0:
        clock.block(blocking_limit_ms)
    try:
        for index, work in enumerate(works):
            clock.sweep()
            clock.start()
            output = work()
            clock.stop()
            finish(index, output)
        clock.done()
        on_queued()
    except BaseException:
        clock.release()
        raise
    return clock.drain()
