"""The jobs of a run, handed out to one or several judges as their builds end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Condition

from inlinebench.messages import Evaluate

Key = tuple[str, str, str]


class WorkList:
    """Thread-safe. `builds` holds, by solution, what ends when it is built or can't be built ahead.

    With `returns` a taker may be lost and its job come back, so nobody is told that there are no more before all that
    were taken are done.
    """

    def __init__(self, jobs: Sequence[Evaluate], builds: Mapping[Path, Future[None]], *, returns: bool = False) -> None:
        self._waiting, self._builds, self._returns = list(jobs), builds, returns
        self._in_hand: dict[object, Evaluate] = {}
        self._promised: dict[object, Evaluate] = {}
        self._changed = Condition()
        for build in builds.values():
            build.add_done_callback(lambda _: self._notify())

    def take(self, taker: object) -> Evaluate | None:
        """The next job for a taker, which is done with the last one it took; None if there are no more.

        Waits for a build if none is ready. Of the ready jobs it gets one of the problem and shape that it is at,
        whose stage is set up; else one that no other taker is at or was told to expect; else the first. The job says
        what its taker is to expect next.
        """
        with self._changed:
            last = self._in_hand.pop(taker, None)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._ready() or self._is_over())
            ready = self._ready()
            return self._hand_out(ready, taker, last) if ready else None

    def __len__(self) -> int:
        """How many jobs nobody has taken."""
        return len(self._waiting)

    def give_back(self, taker: object) -> None:
        """A taker that won't finish its job: somebody else will."""
        with self._changed:
            self._promised.pop(taker, None)
            self._waiting.insert(0, self._in_hand.pop(taker))
            self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _is_over(self) -> bool:
        return not self._waiting and not (self._returns and self._in_hand)

    def _ready(self) -> list[Evaluate]:
        return [job for job in self._waiting if self._is_built(job)]

    def _is_built(self, job: Evaluate) -> bool:
        build = None if job.solution is None else self._builds.get(job.solution)
        return build is None or build.done()

    def _hand_out(self, ready: Sequence[Evaluate], taker: object, last: Evaluate | None) -> Evaluate:
        here = None if last is None else last.problem.key
        promised = self._promised.pop(taker, None)
        # False sorts first, and jobs that are alike keep their order.
        chosen = min(ready, key=lambda job: (job is not promised, job.problem.key != here, self._is_promised(job),
                                             self._is_underway(job)))
        self._waiting.remove(chosen)
        self._promised = {other: job for other, job in self._promised.items() if job is not chosen}
        self._in_hand[taker] = chosen
        following = self._promise(taker, chosen)
        return replace(chosen, following=following)

    def _promise(self, taker: object, chosen: Evaluate) -> Evaluate | None:
        """What whoever has this job will probably get next, which the others leave alone as long as there is more."""
        free = [job for job in self._waiting if not self._is_promised(job)]
        following = min(free, default=None, key=lambda job: (
            not self._is_built(job), job.problem.key != chosen.problem.key, self._is_underway(job)))
        if following is not None:
            self._promised[taker] = following
        return following

    def _is_promised(self, job: Evaluate) -> bool:
        return any(job is other for other in self._promised.values())

    def _is_underway(self, job: Evaluate) -> bool:
        """Whether somebody is at its problem and shape."""
        return job.problem.key in {other.problem.key for other in self._in_hand.values()}
