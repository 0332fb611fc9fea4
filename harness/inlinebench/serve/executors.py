"""The executors in use: one for each set of options, each with its judges."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from threading import Condition, Lock
from typing import Any

from inlinebench import catalog
from inlinebench.device_kinds import kind_of
from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate, Jobs
from inlinebench.options import Options
from inlinebench.results.result import Result, Verdict
from inlinebench.scheduler.device_worker import DeviceWorker
from inlinebench.scheduler.executor import LocalExecutor
from inlinebench.scheduler.observer import Silent
from inlinebench.scheduler.plan import choose, plan
from inlinebench.serve.place import turn
from inlinebench.serve.reuse import Answered, Once

Kind = tuple[tuple[str, Any], ...]
"""The options of an executor, as pairs of name and value."""
_OF_A_CALL = frozenset({
    "names", "solution_files", "responses", "shapes", "constants", "precision", "backward", "problems", "solutions"})
"""The options that select the evaluation. Judges do not depend on them."""
MOST_EXECUTORS = 2
"""Idle executors beyond this number are closed. Each has judges, which occupy memory on the device."""
MOST_TRIES = 3
"""How often a solution is evaluated while the result is an `internal_error`, as it is when its judge is killed."""


class WarmWorker:
    """A device worker and the thread that runs it.

    A judge is killed when the thread that started it ends, so the thread lives as long as the executor.
    """

    def __init__(self, worker: DeviceWorker) -> None:
        self.worker = worker
        self.thread = ThreadPoolExecutor(1)
        self.at: tuple[str, str, str] | None = None
        """The key of the problem and shape that its judge has prepared."""


class WarmExecutor:
    """An executor with its workers. Evaluations on a GPU take turns, also those of different executors and processes.
    """

    def __init__(self, executor: LocalExecutor) -> None:
        self.executor = executor
        self.workers = [WarmWorker(worker) for worker in executor.workers]
        self._free = list(self.workers)
        self._builds = 0
        """How many solutions to be built wait for a worker, which supplies the constructor's arguments."""
        self._changed = Condition()

    def evaluate(self, options: Options, once: Once) -> Answered:
        """Returns the result of the evaluation. Raises UsageError unless the options select exactly one."""
        job = the_job(options, self.executor.device)
        if isinstance(job, Result):
            return Answered(job, reused=False)
        keys = [self.executor.key(job, warm.worker) for warm in self.workers]
        return once(job, keys, lambda: self.results((job,))[0])

    def results(self, jobs: Jobs) -> list[Result]:
        """Returns the results of jobs of one solution. They are evaluated again if one is an `internal_error`."""
        for _ in range(MOST_TRIES):
            self._build(jobs[0])
            with self._reserved(jobs[0]) as warm:
                results = warm.thread.submit(self._evaluate, warm, jobs).result()
            if all(result.verdict is not Verdict.INTERNAL_ERROR for result in results):
                break
        return results

    def _build(self, job: Evaluate) -> None:
        """Prebuilds the solution, if possible, without occupying a judge during the build."""
        with self._reserved(job, to_build=True) as warm:
            started = warm.thread.submit(self.executor.prebuild, [job], warm.worker).result()
        for build in started.values():
            build.result()

    def _evaluate(self, warm: WarmWorker, jobs: Jobs) -> list[Result]:
        warm.at = jobs[0].problem.key
        if not kind_of(warm.worker.device).times_are_comparable:
            return self.executor.evaluate(warm.worker, jobs)
        with turn(warm.worker.device):
            return self.executor.evaluate(warm.worker, jobs)

    @contextmanager
    def _reserved(self, job: Evaluate, *, to_build: bool = False) -> Iterator[WarmWorker]:
        """Waits for a free worker and reserves it, preferably one that has prepared the job's problem.

        Solutions to be built go first: they need the worker for a moment, and compilers would be idle meanwhile.
        """
        with self._changed:
            self._builds += to_build
            self._changed.wait_for(lambda: self._free and (to_build or not self._builds))
            self._builds -= to_build
            warm = min(self._free, key=lambda each: each.at != job.problem.key)
            self._free.remove(warm)
        try:
            yield warm
        finally:
            with self._changed:
                self._free.append(warm)
                self._changed.notify_all()


def the_job(options: Options, device: str) -> Evaluate | Result:
    """Returns the evaluation that the options select, or its result if that is known without an evaluation.

    Raises UsageError unless they select exactly one.
    """
    todo = plan(choose(options, catalog.read(options.problems, options.solutions)), options, device)
    found: list[Evaluate | Result] = [*todo.jobs, *todo.known]
    if len(found) != 1:
        raise UsageError("select exactly one evaluation (one problem, one solution, one shape); these arguments "
                         f"select {len(found)}")
    return found[0]


class Executors:
    """Opens executors on first use, and closes idle ones beyond `MOST_EXECUTORS`."""

    def __init__(self) -> None:
        self._executors: OrderedDict[Kind, Future[WarmExecutor]] = OrderedDict()
        self._users: dict[Kind, int] = {}
        self._lock = Lock()
        # A judge is killed when the thread that started it ends. This thread lives as long as the executors.
        self._maker = ThreadPoolExecutor(1)

    def evaluate(self, options: Options, once: Once) -> Answered:
        """Returns the result of the evaluation. Raises what `LocalExecutor` and `WarmExecutor.evaluate` raise."""
        with self.opened(options) as warm:
            return warm.evaluate(options, once)

    @contextmanager
    def opened(self, options: Options) -> Iterator[WarmExecutor]:
        """Yields the executor of these options. Raises what `LocalExecutor` raises."""
        kind = _kind(options)
        with self._lock:
            if kind not in self._executors:
                self._make_place()
                self._executors[kind] = self._maker.submit(self._open, options)
            self._executors.move_to_end(kind)
            self._users[kind] = self._users.get(kind, 0) + 1
            opened = self._executors[kind]
        try:
            yield opened.result()
        finally:
            with self._lock:
                self._users[kind] -= 1
                if opened.done() and opened.exception() is not None and self._executors.get(kind) is opened:
                    del self._executors[kind]  # the next request tries again

    def close(self) -> None:
        """Closes all executors, which ends their judges."""
        with self._lock:
            for opened in self._executors.values():
                self._maker.submit(_close, opened)
            self._executors.clear()
        self._maker.shutdown()

    def _open(self, options: Options) -> WarmExecutor:
        return WarmExecutor(LocalExecutor(options, Silent()).__enter__())

    def _make_place(self) -> None:
        idle = [kind for kind in self._executors if not self._users.get(kind)]
        for kind in idle[: max(0, len(self._executors) - MOST_EXECUTORS + 1)]:
            self._maker.submit(_close, self._executors.pop(kind))


def _close(opened: Future[WarmExecutor]) -> None:
    if opened.exception() is None:
        warm = opened.result()
        warm.executor.__exit__(None, None, None)
        for each in warm.workers:
            each.thread.shutdown(wait=False)


def _kind(options: Options) -> Kind:
    """Returns the options that evaluations must have in common to share judges."""
    return tuple((each.name, getattr(options, each.name)) for each in fields(options) if each.name not in _OF_A_CALL)
