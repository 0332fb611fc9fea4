"""One run: plans it, recalls earlier results, and yields results as soon as they are known."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import Any, Protocol

from inlinebench.catalog import Solution
from inlinebench.errors import NoDevice, WorkerLost
from inlinebench.messages import Evaluate, Jobs
from inlinebench.options import Options
from inlinebench.results.library import counted
from inlinebench.results.result import Result, Verdict
from inlinebench.scheduler.observer import Observer
from inlinebench.scheduler.plan import Choice, plan
from inlinebench.scheduler.resume import EarlierResults
from inlinebench.scheduler.rivals import Rivals
from inlinebench.scheduler.work_list import WorkList


class Executor(Protocol):
    """Evaluates jobs with workers. A session only passes the workers back to the executor."""

    @property
    def workers(self) -> Sequence[Any]: ...

    @property
    def device(self) -> str: ...

    @property
    def loses_workers(self) -> bool:
        """Whether `evaluate` may raise WorkerLost."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def key(self, job: Evaluate, worker: Any) -> str | None: ...

    def prebuild(self, jobs: Sequence[Evaluate], worker: Any) -> dict[Path, Future[None]]: ...

    def evaluate(self, worker: Any, jobs: Jobs) -> Sequence[Result]: ...

    def replace(self, worker: Any) -> bool: ...


class Session:
    """Evaluates the choices with an executor. A context manager; on exit all its processes are ended.

    Entering raises what entering the executor raises, and UsageError if `--resume` finds anything but results in the
    file. `rivals` are solutions that the choices are compared with. `recalled` are the results of an earlier run.
    """

    def __init__(
        self, options: Options, choices: Sequence[Choice], progress: Observer, executor: Executor,
        rivals: Sequence[Solution] = (),
    ) -> None:
        self._options, self._choices, self._progress, self._executor = options, choices, progress, executor
        self._rivals = rivals

    def __enter__(self) -> Session:
        self._executor.__enter__()
        try:
            self._plan()
        except BaseException:
            self._executor.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.__exit__(kind, error, trace)

    @property
    def device(self) -> str:
        """The device of the first worker."""
        return self._executor.device

    def _plan(self) -> None:
        """Splits the work into jobs to evaluate, results known without an evaluation, and results of an earlier run."""
        options, executor = self._options, self._executor
        todo = plan(self._choices, options, executor.device, self._rivals)
        jobs = (*todo.added, *todo.jobs)
        earlier = EarlierResults.read(options.out) if options.resume and options.out else EarlierResults()
        recalled = [
            earlier.recall(job, [executor.key(job, worker) for worker in executor.workers]) if options.resume else None
            for job in jobs
        ]
        partly = {(job.problem_name, job.solution_name)
                  for job, result in zip(jobs, recalled, strict=True) if job.in_set and result is None}
        recalled = [None if job.in_set and (job.problem_name, job.solution_name) in partly else result
                    for job, result in zip(jobs, recalled, strict=True)]  # what one process makes is made together
        self._shard = todo.shard
        self._added = {(job.problem_name, job.shape_name, job.solution_name) for job in todo.added}
        self._jobs = [job for job, result in zip(jobs, recalled, strict=True) if result is None]
        self._known = [result for result in todo.known if result not in earlier]
        self.recalled = [result for result in todo.known if result in earlier] + list(filter(None, recalled))

    def results(self) -> Iterator[Result]:
        """Yields every new result of the run once, as soon as it is known. Raises NoDevice if all workers are lost."""
        self._progress.start(len(self._jobs) + len(self._known))
        yield from self._known
        rivals = Rivals(self._options.baselines, self._jobs, self.recalled)
        work = self._start_builds()
        for result in self._evaluations(work):
            added = (result.problem, result.shape, result.solution) in self._added
            yield from rivals.release(replace(result, shard=None if added else self._shard))
        if left := len(work):
            raise NoDevice(f"all workers were lost with {left} evaluations left; use --resume to continue")

    def _start_builds(self) -> WorkList:
        solutions = {job.solution for job in self._jobs if job.solution is not None}
        if len(solutions) < 2:
            return WorkList(self._jobs, {}, returns=self._executor.loses_workers)
        self._progress.phase(f"building {len(solutions)} solutions")
        builds = self._executor.prebuild(self._jobs, self._executor.workers[0])
        return WorkList(self._jobs, builds, returns=self._executor.loses_workers)

    def _evaluations(self, work: WorkList) -> Iterator[Result]:
        """Yields the results of all workers. Several workers run in a thread each."""
        workers = self._executor.workers
        if len(workers) == 1:
            yield from self._results_of(workers[0], work)
            return
        found: Queue[Result | BaseException | None] = Queue()

        def run(worker: Any) -> None:
            try:
                for result in self._results_of(worker, work):
                    found.put(result)
                found.put(None)
            except BaseException as error:  # noqa: BLE001 - raised again by the consumer of the queue
                found.put(error)

        for worker in workers:
            Thread(target=run, args=(worker,), daemon=True).start()
        working = len(workers)
        while working:
            result = found.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result

    def _results_of(self, worker: Any, work: WorkList) -> Iterator[Result]:
        while (jobs := work.take(worker)) is not None:
            try:
                yield from self._executor.evaluate(worker, jobs)
            except WorkerLost:
                work.give_back(worker)
                if not self._executor.replace(worker):
                    return


def exit_status(results: Sequence[Result], strict: bool) -> int:
    """Returns 0 if everything that counts passed or, without `strict`, was skipped or failed only at a derived shape;
    else 1. Library solutions count only if there is nothing else."""
    if strict:
        return int(any(each.verdict is not Verdict.PASSED for each in counted(results)))
    return int(any(each.verdict.is_failure and not each.failed_derived for each in counted(results)))
