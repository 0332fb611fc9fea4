"""The queue of a run's jobs: hands them out to one or several workers as their builds end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Condition

from inlinebench.messages import Evaluate, Jobs

Key = tuple[str, str, str]


class WorkList:
    """A thread-safe queue of jobs.

    `builds` has a future for each solution that is being prebuilt; its jobs are ready when that is done. With `returns`
    a lost worker's job may come back, so `take` returns None only after all taken jobs are done. The jobs of a set are
    handed out together.
    """

    def __init__(self, jobs: Sequence[Evaluate], builds: Mapping[Path, Future[None]], *, returns: bool = False) -> None:
        self._waiting, self._builds, self._returns = list(jobs), builds, returns
        self._in_hand: dict[object, Jobs] = {}
        self._promised: dict[object, Evaluate] = {}
        self._changed = Condition()
        for build in builds.values():
            build.add_done_callback(lambda _: self._notify())

    def take(self, taker: object) -> Jobs | None:
        """Returns the next job for a taker, with those of its set, whose last one is then done; None if there are no
        more jobs.

        Waits for a build if no job is ready. Prefers the job that was promised to this taker, then jobs of its present
        problem and shape, whose workload is prepared, then jobs that nobody else was promised, then problems and
        shapes that nobody else works on. `following` of the first job is the job that is promised next.
        """
        with self._changed:
            last = self._in_hand.pop(taker, None)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._ready() or self._is_over())
            ready = self._ready()
            return self._hand_out(ready, taker, last) if ready else None

    def __len__(self) -> int:
        """The number of jobs that nobody has taken."""
        return len(self._waiting)

    def give_back(self, taker: object) -> None:
        """Puts the job of a lost taker back at the front."""
        with self._changed:
            self._promised.pop(taker, None)
            self._waiting[:0] = self._in_hand.pop(taker)
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

    def _hand_out(self, ready: Sequence[Evaluate], taker: object, last: Jobs | None) -> Jobs:
        here = None if last is None else last[0].problem.key
        promised = self._promised.pop(taker, None)
        # False sorts first, and min() keeps the order of equal jobs.
        chosen = min(ready, key=lambda job: (job is not promised, job.problem.key != here, self._is_promised(job),
                                             self._is_underway(job)))
        jobs = tuple(job for job in self._waiting if job is chosen or _in_one_set(job, chosen))
        self._waiting = [job for job in self._waiting if not any(job is each for each in jobs)]
        self._promised = {other: job for other, job in self._promised.items()
                          if not any(job is each for each in jobs)}
        self._in_hand[taker] = jobs
        following = self._promise(taker, jobs[0])
        return (replace(jobs[0], following=following), *jobs[1:])

    def _promise(self, taker: object, chosen: Evaluate) -> Evaluate | None:
        """Promises a taker its probable next job, which the other takers avoid."""
        free = [job for job in self._waiting if not self._is_promised(job)]
        following = min(free, default=None, key=lambda job: (
            not self._is_built(job), job.problem.key != chosen.problem.key, self._is_underway(job)))
        if following is not None:
            self._promised[taker] = following
        return following

    def _is_promised(self, job: Evaluate) -> bool:
        return any(job is other for other in self._promised.values())

    def _is_underway(self, job: Evaluate) -> bool:
        """Whether a taker works on its problem and shape."""
        return job.problem.key in {other.problem.key for jobs in self._in_hand.values() for other in jobs}


def _in_one_set(one: Evaluate, other: Evaluate) -> bool:
    """Whether one process makes both evaluations."""
    return one.in_set and other.in_set and (one.problem_name, one.solution_name) == (
        other.problem_name, other.solution_name)
