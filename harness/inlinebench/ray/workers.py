"""Evaluates on Ray workers, each of which has several evaluations at a time."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread

from inlinebench.device_kinds import kind_of
from inlinebench.errors import NoDevice, NoSandbox, UsageError, WorkerLost
from inlinebench.messages import Evaluate
from inlinebench.options import RAY, Options, rules
from inlinebench.ray.cluster import joined, kind_in, on_worker
from inlinebench.ray.device_worker import OPEN_S, RayDeviceWorker, after_losses
from inlinebench.ray.slots import Place, Slots
from inlinebench.ray.sources import of_solution
from inlinebench.results.result import Result
from inlinebench.scheduler.identity import identity, sources
from inlinebench.serve.executors import the_job
from inlinebench.serve.reuse import Answered, Once

MOST_LOSSES = 2
"""The number of lost workers after which an evaluation is an internal error. The second one had nothing else to do."""
AGAIN_S = 5.0
"""Seconds before a lost worker is tried to be replaced once more."""


class RayWorkers:
    """Workers of a Ray cluster, started by the constructor. They have the interface of `Executors`.

    A worker that is lost is replaced. Its evaluations go to other workers, each to one that does nothing else: so an
    evaluation that ends its workers is told from those that were there at the same time.

    Args:
        options: what the workers are opened with. Evaluations may have other ones, but not another kind of device.
        address: the address of the cluster, if this process is not connected to one.
        count: how many workers.
        cpus: CPU cores of each, for its builds. A worker is sent one evaluation more than that, for its judge.
    """

    def __init__(self, options: Options, address: str | None, count: int, cpus: int) -> None:
        self._ray, self._joined_here = joined(address)
        self._closing = Event()
        workers: list[RayDeviceWorker] = []
        try:
            self._kind = kind_in(self._ray, options)
            self._cpus = cpus
            opened_with = self._checked(options)
            workers += [RayDeviceWorker(self._ray, opened_with, self._kind, cpus, cpus + 1) for _ in range(count)]
            for worker in workers:
                worker.open(OPEN_S)
        except BaseException:
            for worker in workers:
                worker.kill()
            self._leave()
            raise
        self._slots = Slots(workers, cpus + 1, OPEN_S)

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
            with self._slots.reserved(job.problem.key, alone=bool(losses)) as place:
                worker = place.worker
                key = identity(job, options, worker.environment)  # of the files here: a worker may not get all of them
                solution = None if job.solution is None else of_solution(job, options)
                try:
                    (result,) = worker.evaluate(options, (job,), sources(job.problem.path), solution)
                    return replace(result, key=key)
                except WorkerLost as lost:
                    losses.append(lost)
                    self._replace(place)
            if len(losses) == MOST_LOSSES:
                return after_losses((job,), worker.device, losses)[0]

    def _replace(self, place: Place[RayDeviceWorker]) -> None:
        """Has a lost worker replaced, once for all its evaluations."""
        if not self._closing.is_set() and self._slots.set_ready(place, ready=False):
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
