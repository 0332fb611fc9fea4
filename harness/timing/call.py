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

from collections.abc import Callable
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
    held: bool


class Clock(Protocol):
    """What a device must offer to have calls timed on it."""

    def flush(self) -> None: ...
    def hold(self, limit_ms: float) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def release(self) -> None: ...
    def drain(self) -> Sample: ...


def timed_call(
    clock: Clock, work: Callable[[], Output], finish: Callable[[Output], None], hold_limit_ms: float
) -> tuple[Output, Sample]:
    """Runs `work` and then `finish` between the clock's steps; gives the output of `work` and the sample.

    A hold limit of 0 ms means no hold. If `work` or `finish` raises, the GPU is released before the exception leaves,
    so that nothing waits for the hold's limit.
    """
    clock.flush()
    if hold_limit_ms > 0:
        clock.hold(hold_limit_ms)
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
