"""The evaluations that wait. Callers take turns, so that none waits until another one's thousands are done."""

from __future__ import annotations

from collections import OrderedDict, deque
from threading import Condition
from typing import Generic, TypeVar

Waiting = TypeVar("Waiting")


class Turns(Generic[Waiting]):
    """What waits: that of one owner in the order of its arrival, and the owners in turn. Thread-safe."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Waiting]] = OrderedDict()
        self._changed = Condition()

    def put(self, owner: str, each: Waiting) -> None:
        """Adds one of an owner."""
        with self._changed:
            self._queues.setdefault(owner, deque()).append(each)
            self._changed.notify()

    def get(self) -> Waiting:
        """Waits until something waits. Returns the first of the owner whose turn it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._queues)
            owner, waiting = self._queues.popitem(last=False)
            first = waiting.popleft()
            if waiting:
                self._queues[owner] = waiting  # behind all others
            return first

    def count(self, owner: str | None = None) -> int:
        """Returns how many of an owner wait, or how many in all."""
        with self._changed:
            return sum(len(waiting) for name, waiting in self._queues.items() if owner in (None, name))
