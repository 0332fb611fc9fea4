"""The jobs of a run, handed out to one or several judges as their builds end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from threading import Lock

from harness.judge.messages import Evaluate

Key = tuple[str, str, str]


class WorkList:
    """Thread-safe. `builds` holds, by solution, what ends when it is built or can't be built ahead."""

    def __init__(self, jobs: Sequence[Evaluate], builds: Mapping[Path, Future[None]]) -> None:
        self._waiting, self._builds = list(jobs), builds
        self._in_hand: dict[object, Key] = {}
        self._lock = Lock()

    def take(self, taker: object) -> Evaluate | None:
        """The next job for a taker, which is done with the last one it took; None if there are no more.

        Waits for a build if none is ready. Of the ready jobs it gets one of the problem and shape that it is at,
        whose stage is set up; else one that no other taker is at; else the first.
        """
        while True:
            with self._lock:
                ready = [job for job in self._waiting if self._is_built(job)]
                if ready:
                    return self._hand_out(ready, taker)
                if not self._waiting:
                    self._in_hand.pop(taker, None)
                    return None
                pending = [build for build in self._builds.values() if not build.done()]
            wait(pending, return_when=FIRST_COMPLETED)

    def _is_built(self, job: Evaluate) -> bool:
        build = None if job.solution is None else self._builds.get(job.solution)
        return build is None or build.done()

    def _hand_out(self, ready: Sequence[Evaluate], taker: object) -> Evaluate:
        here = self._in_hand.get(taker)
        elsewhere = {key for other, key in self._in_hand.items() if other is not taker}
        # False sorts first, and jobs that are alike keep their order.
        chosen = min(ready, key=lambda job: (job.problem.key != here, job.problem.key in elsewhere))
        self._waiting.remove(chosen)
        self._in_hand[taker] = chosen.problem.key
        return chosen
