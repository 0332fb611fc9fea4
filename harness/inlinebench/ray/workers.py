"""Evaluates on Ray workers, each of which has several evaluations at a time."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread
from typing import Any

from inlinebench.device_kinds import kind_of
from inlinebench.errors import NoDevice, NoSandbox, UsageError, WorkerLost
from inlinebench.messages import Evaluate
from inlinebench.options import RAY, Options, rules
from inlinebench.ray.cluster import joined, kind_in, on_worker
from inlinebench.ray.device_worker import MOST_LOSSES, OPEN_S, RayDeviceWorker, after_losses
from inlinebench.ray.slots import Place, Slots
from inlinebench.ray.sources import of_solution
from inlinebench.results.result import Result
from inlinebench.scheduler.identity import identity, sources
from inlinebench.serve.executors import the_job
from inlinebench.serve.reuse import Answered, Once

AGAIN_S = 5.0
"""Seconds before a lost worker is tried to be replaced once more."""


def each_has(cpus: int) -> int:
    """Returns how many evaluations a worker with so many cores has at a time: one builds on each core, or waits for the
    judge, and one is judged."""
    return cpus + 1


class RayWorkers:
    """Workers of a Ray cluster, started by the constructor. They have the interface of `Executors`.

    A worker that is lost is replaced, and its evaluations go to other workers. One that has lost all but the last of
    `MOST_LOSSES` workers may be why. It gets a worker that does nothing else, and is given up if that is lost, too. So
    it is told from those that were there at the same time.

    Args:
        options: what the workers are opened with. Evaluations may have other ones, but not another kind of device.
        address: the address of the cluster, if this process is not connected to one.
        count: how many workers.
        cpus: CPU cores of each, for its builds.
    """

    def __init__(self, options: Options, address: str | None, count: int, cpus: int) -> None:
        self._ray, self._joined_here = joined(address)
        self._closing = Event()
        workers: list[RayDeviceWorker] = []
        try:
            self._kind = kind_in(self._ray, options)
            self._cpus = cpus
            opened_with = self._checked(options)
            workers += [RayDeviceWorker(self._ray, opened_with, self._kind, cpus, each_has(cpus)) for _ in range(count)]
            for worker in workers:
                worker.open(OPEN_S)
        except BaseException:
            for worker in workers:
                worker.kill()
            self._leave()
            raise
        self._slots = Slots(workers, each_has(cpus), OPEN_S)

    def evaluate(self, options: Options, once: Once) -> Answered:
        """Returns the result of the evaluation. Raises UsageError unless the options select exactly one, NoDevice if
        no worker is ready for too long, and what `LocalExecutor` raises on a worker."""
        options = self._checked(options)
        job = the_job(options, self._kind.name)
        if isinstance(job, Result):
            return Answered(job, reused=False)
        workers = [place.worker for place in self._slots.places]
        keys = dict.fromkeys(identity(job, options, worker.environment) for worker in workers)
        return once(job, [*keys], lambda: self._result(options, job))

    def close(self) -> None:
        """Ends the workers, and what they evaluate."""
        self._closing.set()
        self._slots.close()
        for place in self._slots.places:
            place.worker.close()
        self._leave()

    def _result(self, options: Options, job: Evaluate) -> Result:
        losses: list[WorkerLost] = []
        while True:
            with self._slots.reserved(job.problem.key, alone=len(losses) == MOST_LOSSES - 1) as place:
                worker, actor = place.worker, place.worker.actor
                key = identity(job, options, worker.environment)  # of the files here: a worker may not get all of them
                solution = None if job.solution is None else of_solution(job, options)
                try:
                    (result,) = worker.evaluate(options, (job,), sources(job.problem.path), solution)
                    return replace(result, key=key)
                except WorkerLost as lost:
                    losses.append(lost)
                    self._replace(place, actor)
            if len(losses) == MOST_LOSSES:
                return after_losses((job,), worker.device, losses)[0]

    def _replace(self, place: Place[RayDeviceWorker], lost: Any) -> None:
        """Has a lost actor replaced, once for all its evaluations."""
        if place.worker.actor is lost and not self._closing.is_set() and self._slots.set_ready(place, ready=False):
            Thread(target=self._start_again, args=(place,), daemon=True).start()

    def _start_again(self, place: Place[RayDeviceWorker]) -> None:
        while not self._closing.is_set():
            place.worker.kill()
            place.worker.start()
            try:
                place.worker.open(OPEN_S)
            except (NoDevice, NoSandbox, UsageError):  # its machine may be back later
                self._closing.wait(AGAIN_S)
            else:
                self._slots.set_ready(place, ready=True)
                break
        if self._closing.is_set():
            place.worker.kill()

    def _checked(self, options: Options) -> Options:
        """Returns options for the workers. Raises UsageError if these are not for workers, or for others."""
        rules.check(replace(options, executor=RAY), lambda field, value: f"{field}={value!r}")
        if options.device != "auto" and kind_of(options.device) is not self._kind:
            raise UsageError(f"--device {options.device}: the workers of this pool have another device, "
                             f"{self._kind.name}")
        return on_worker(replace(options, jobs=options.jobs or self._cpus), self._kind)

    def _leave(self) -> None:
        if self._joined_here:
            self._ray.shutdown()
