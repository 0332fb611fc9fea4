"""The steps of a call that the judge releases and times (`inlinebench.evaluation.integrity.outside_clock`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from inlinebench.wire.locations import Places

Output = TypeVar("Output")


class HoldingClock(Protocol):
    """The operations of `GpuClock` that hold a call."""

    def flush(self) -> None: ...
    def hold(self) -> None: ...
    def wait_for_release(self, announce: Callable[[], None]) -> None: ...
    def done(self) -> None: ...
    def release(self) -> None: ...
    def synchronize(self) -> None: ...


def hold(
    clock: HoldingClock, work: Callable[[], Output], share: Callable[[Output], Places], on_host: bool,
    on_held: Callable[[Places | None], None],
) -> Output:
    """Makes a call that another process releases after `on_held`, and waits for its end. Returns its output.

    The call is queued behind a kernel that waits for the release, and `on_held` gets the locations of its results. With
    `on_host` the call begins on the host at its release, and `on_held` gets None: for calls that wait for the device.
    In both cases a flag tells the other process that the work and the copies are done.

    Args:
        clock: waits for the release, and signals the end of the work.
        work: makes the call.
        share: queues copies of what cannot be shared, and returns the locations of the rest.
        on_host: whether to wait on the host.
        on_held: tells the other process that the call is held.
    """
    clock.flush()
    if on_host:
        clock.wait_for_release(lambda: on_held(None))
    else:
        clock.hold()
    try:
        output = work()
        places = share(output)
        clock.done()
        if not on_host:
            on_held(places)
    except BaseException:
        if on_host:
            clock.done()  # the other process waits for it
        clock.release()
        raise
    clock.synchronize()
    return output
