"""Which worker evaluates what: each has a few evaluations at a time, and callers wait for room."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Generic, TypeVar

from inlinebench.errors import NoDevice

Each = TypeVar("Each")


@dataclass(eq=False)
class Place(Generic[Each]):
    """A worker, and what it has to do."""

    worker: Each
    """The worker."""
    ready: bool = True
    """Whether evaluations can be sent to it. False while it is replaced."""
    busy: int = 0
    """How many evaluations it has."""
    taken: bool = False
    """Whether one evaluation has it for itself, or waits for that."""
    problem: Hashable = None
    """The problem of the last evaluation that was sent to it."""


class Slots(Generic[Each]):
    """The room for evaluations on workers. All methods may be called from any thread.

    Args:
        workers: the workers.
        most: how many evaluations each may have at a time.
        patience: how long callers wait while no worker is ready, in seconds.
    """

    def __init__(self, workers: Sequence[Each], most: int, patience: float) -> None:
        self.places = [Place(worker) for worker in workers]
        self._most, self._patience = most, patience
        self._changed = Condition()
        self._closed = False

    @contextmanager
    def reserved(self, problem: Hashable, *, alone: bool = False) -> Iterator[Place[Each]]:
        """Waits for room on a worker, or with `alone` for a worker that does nothing else, and yields its place.

        Of several, the one that was last sent this problem is chosen, or else the one with the fewest evaluations.
        Raises NoDevice if no worker is ready for too long, and after `close`.
        """
        with self._changed:
            place = self._choose(problem, alone)
        try:
            yield place
        finally:
            with self._changed:
                place.busy -= 1
                place.taken &= not alone
                self._changed.notify_all()

    def set_ready(self, place: Place[Each], ready: bool) -> bool:
        """Sets whether a worker is ready. Returns whether that is a change."""
        with self._changed:
            changed = place.ready is not ready
            place.ready, place.problem = ready, None
            self._changed.notify_all()
            return changed

    def close(self) -> None:
        """Refuses further evaluations."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _choose(self, problem: Hashable, alone: bool) -> Place[Each]:
        def with_room() -> list[Place[Each]]:
            return [each for each in self.places
                    if each.ready and not each.taken and (alone or each.busy < self._most)]

        self._wait_for(with_room)
        place = min(with_room(), key=lambda each: (each.problem != problem, each.busy))
        if alone:
            place.taken = True  # nothing else is sent to it from now on
            try:
                self._wait_for(lambda: place.ready and not place.busy)
            except BaseException:
                place.taken = False
                raise
        place.busy += 1
        place.problem = problem
        return place

    def _wait_for(self, true: Callable[[], object]) -> None:
        while not true() or self._closed:
            if self._closed:
                raise NoDevice("the pool is closed; evaluate inside of `with Pool(...)`")
            ready = any(each.ready for each in self.places)
            if not self._changed.wait(self._patience) and not ready and not any(each.ready for each in self.places):
                raise NoDevice(f"no worker of the pool has been ready for {self._patience:.0f} s; look at `ray status`")
