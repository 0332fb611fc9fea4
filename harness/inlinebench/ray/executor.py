"""The executor of `--executor ray`: a worker for each GPU of a Ray cluster.

If a worker is lost, its job goes to another worker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType

from inlinebench.device_kinds import DeviceKind
from inlinebench.errors import NoDevice, UsageError, WorkerLost
from inlinebench.messages import Evaluate, Jobs
from inlinebench.options import Options
from inlinebench.ray.cluster import joined, kind_in, on_worker
from inlinebench.ray.device_worker import MOST_LOSSES, OPEN_S, RayDeviceWorker, after_losses
from inlinebench.ray.sources import of_solution
from inlinebench.results.result import Result
from inlinebench.scheduler.identity import identity, sources
from inlinebench.scheduler.observer import Observer


class RayExecutor:
    """Evaluates on the workers of a Ray cluster, as `LocalExecutor` does on one machine. A context manager.

    Entering raises UsageError if Ray is not installed or the cluster cannot be joined, and what `LocalExecutor` raises
    on the workers.
    """

    loses_workers = True

    def __init__(self, options: Options, progress: Observer) -> None:
        self._options, self._progress = options, progress
        self._losses: defaultdict[tuple[str, str, str], list[WorkerLost]] = defaultdict(list)
        self._lock = Lock()

    def __enter__(self) -> RayExecutor:
        self._ray, _ = joined(self._options.ray_address)
        try:
            kind = kind_in(self._ray, self._options)
            self._on_worker = on_worker(self._options, kind)
            self._progress.phase("starting workers")
            cpus = 1 if kind.ray_resource else 0  # two workers on a CPU may share a core
            self.workers = [RayDeviceWorker(self._ray, self._on_worker, kind, cpus) for _ in range(self._count(kind))]
            for worker in self.workers:
                worker.open(OPEN_S)
            self.device = self.workers[0].device
        except BaseException:
            self._ray.shutdown()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.close() if kind is None else worker.kill()
        self._ray.shutdown()

    def key(self, job: Evaluate, worker: RayDeviceWorker) -> str | None:
        """Returns the key of a job, like `LocalExecutor.key`."""
        return identity(job, self._options, worker.environment)

    def prebuild(self, jobs: Sequence[Evaluate], worker: RayDeviceWorker) -> dict[Path, Future[None]]:
        """Prebuilds nothing: workers may have separate caches, and which worker gets which job is not known yet."""
        return {}

    def evaluate(self, worker: RayDeviceWorker, jobs: Jobs) -> list[Result]:
        """Returns the results of jobs of one solution. Raises WorkerLost, until they have lost `MOST_LOSSES` workers.
        """
        job = jobs[0]
        name = (job.problem_name, job.solution_name, job.shape_name)
        with self._lock:
            self._progress.update("/".join(name))
        keys = [self.key(each, worker) for each in jobs]  # of the files here: a worker may not get all of them
        solution = None if job.solution is None else of_solution(job, self._options)
        try:
            results = worker.evaluate(self._on_worker, jobs, sources(job.problem.path), solution)
        except WorkerLost as lost:
            with self._lock:
                self._losses[name].append(lost)
                self._progress.line(f"{'/'.join(name)}: a worker was lost ({lost})")
                if len(self._losses[name]) < MOST_LOSSES:
                    raise
            self.replace(worker)
            return after_losses(jobs, worker.device, self._losses[name])
        for each, result in zip(jobs, results, strict=True):
            if self._options.verbose and result.log:
                with self._lock:
                    self._progress.line(f"--- {job.problem_name} {job.solution_name} {each.shape_name}\n{result.log}")
        return [replace(result, key=key) for key, result in zip(keys, results, strict=True)]

    def replace(self, worker: RayDeviceWorker) -> bool:
        """Starts another worker in place of a lost one. Returns whether that succeeded."""
        worker.start()
        try:
            worker.open(OPEN_S)
        except (NoDevice, UsageError) as error:
            with self._lock:
                self._progress.line(f"a lost worker cannot be replaced: {error}")
            return False
        return True

    def _count(self, kind: DeviceKind) -> int:
        if kind.ray_resource is not None:
            return int(self._ray.cluster_resources()[kind.ray_resource])
        return len(self._options.devices) or len([node for node in self._ray.nodes() if node["Alive"]])

