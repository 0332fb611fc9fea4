"""The steps of a call that the judge releases and times (`inlinebench.evaluation.integrity.outside_clock`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

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


@dataclass(frozen=True)
class HeldOutput(Generic[Output]):
    """A held call that is finished."""

    output: Output
    """What the call returned."""
    places: Places
    """Where its outputs and states are."""


def hold(
    clock: HoldingClock, work: Callable[[], Output], share: Callable[[Output], Places], on_host: bool,
    on_held: Callable[[Places | None], None],
) -> HeldOutput[Output]:
    """Makes a call that another process releases after `on_held`, and waits for its end.

    The call is queued behind a kernel that waits for the release, and `on_held` gets the locations of its results. With
    `on_host` the call begins on the host at its release, and `on_held` gets None: for calls that wait for the device.

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
        output = work()
        places = share(output)
        clock.synchronize()
        return HeldOutput(output, places)
    clock.hold()
    try:
        output = work()
        places = share(output)
        clock.done()
        on_held(places)
    except BaseException:
        clock.release()
        raise
    clock.synchronize()
    return HeldOutput(output, places)
