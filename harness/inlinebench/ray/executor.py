"""The executor of `--executor ray`: a worker for each GPU of a Ray cluster.

If a worker is lost, its job goes to another worker. Ray does not restart workers by itself, because a worker must be
opened before it can evaluate.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from inlinebench.device_kinds import KINDS, DeviceKind, kind_of
from inlinebench.errors import NoDevice, UsageError, WorkerLost
from inlinebench.messages import Evaluate, Jobs
from inlinebench.options import Options
from inlinebench.options.kinds import ALL_DEVICES
from inlinebench.ray.sources import of_solution
from inlinebench.ray.worker import Sources, Worker, WorkerReady
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.scheduler.identity import identity, sources
from inlinebench.scheduler.observer import Observer
from inlinebench.version import __version__

MOST_LOSSES = 3
"""The number of lost workers after which a job is an internal error."""
OPEN_S = 300.0
"""Seconds for a worker to be scheduled and to start its judge."""
CLOSE_S = 20.0
"""Seconds for a worker to close."""
OBJECTS_BYTES = 128 << 20
"""Shared memory of a Ray that this run starts. Sources and results are small."""


class RayDeviceWorker:
    """A worker of Ray, which is replaced when it is lost."""

    def __init__(self, ray: Any, options: Options, kind: DeviceKind) -> None:
        self._ray, self._options = ray, options
        needed = 1 if kind.ray_resource else 0
        resources = {"num_gpus": needed, "num_cpus": needed}
        self._kind = ray.remote(Worker).options(**resources, scheduling_strategy="SPREAD", max_restarts=0)
        self.device, self.environment = "", Environment("", __version__)
        self.start()

    def start(self) -> None:
        """Starts a worker, which opens its executor in the background."""
        self.worker = self._kind.remote()
        self._opening = self.worker.open.remote(self._options)

    def open(self, timeout: float) -> None:
        """Waits until the worker is ready, at most `timeout` seconds.

        Raises what entering a LocalExecutor raises, NoDevice if the worker is not ready in time, and UsageError if its
        machine has another version of inlinebench.
        """
        try:
            ready: WorkerReady = self._ray.get(self._opening, timeout=timeout)
        except self._ray.exceptions.RayError as error:
            cause = str(error).strip().rpartition("\n")[2]  # the lines before are Ray's own
            raise NoDevice(f"a Ray worker could not start: {cause}") from error
        if ready.error is not None:
            raise ready.error
        if ready.version != __version__:
            raise UsageError(f"a machine in the cluster has inlinebench {ready.version}, this one has {__version__}; "
                             "install the same version everywhere")
        assert ready.environment is not None
        self.device, self.environment = ready.device, ready.environment

    def evaluate(self, jobs: Jobs, problem: Sources, solution: Sources | None) -> list[Result]:
        """Sends jobs of one solution with these sources and returns their results. Raises WorkerLost."""
        try:
            results: list[Result] = self._ray.get(self.worker.evaluate.remote(jobs, problem, solution))
        except self._ray.exceptions.RayActorError as error:
            raise WorkerLost(_first_line(error)) from error
        return results

    def close(self) -> None:
        """Ends the worker and its judge."""
        with suppress(self._ray.exceptions.RayError):  # a lost or hanging worker is killed next
            self._ray.get(self.worker.close.remote(), timeout=CLOSE_S)
        self.kill()

    def kill(self) -> None:
        """Kills the worker, which also ends its judge."""
        self._ray.kill(self.worker)


class RayExecutor:
    """Evaluates on the workers of a Ray cluster, as `LocalExecutor` does on one machine. A context manager.

    Entering raises UsageError if Ray is not installed or the cluster cannot be joined, and what `LocalExecutor` raises
    on the workers.
    """

    loses_workers = True

    def __init__(self, options: Options, progress: Observer) -> None:
        self._options, self._progress = options, progress
        self._losses: Counter[tuple[str, str, str]] = Counter()
        self._lock = Lock()

    def __enter__(self) -> RayExecutor:
        self._ray = _joined(self._options.ray_address)
        try:
            kind = self._kind()
            options = replace(self._options, device=kind.name, devices=(), executor="local", ray_address=None, out=None,
                              junit=None, resume=False, quiet=True, verbose=False)
            self._progress.phase("starting workers")
            self.workers = [RayDeviceWorker(self._ray, options, kind) for _ in range(self._count(kind))]
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
            results = worker.evaluate(jobs, sources(job.problem.path), solution)
        except WorkerLost as lost:
            with self._lock:
                self._losses[name] += 1
                self._progress.line(f"{'/'.join(name)}: a worker was lost ({lost})")
                if self._losses[name] < MOST_LOSSES:
                    raise
            self.replace(worker)
            reason = f"{MOST_LOSSES} workers were lost during this evaluation, the last one because: {lost}"
            return [Result(job.problem_name, job.solution_name, each.shape_name, worker.device,
                           Verdict.INTERNAL_ERROR, reason, level=job.level,
                           backward=job.problem.backward or None, weight=each.weight) for each in jobs]
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

    def _kind(self) -> DeviceKind:
        """Returns the kind of device of the workers. Raises NoDevice if the cluster lacks a kind that is asked for."""
        options = self._options
        wanted = options.devices[0] if options.devices else options.device
        kind = KINDS[0] if wanted == ALL_DEVICES else kind_of(wanted)
        if kind.ray_resource is None or self._ray.cluster_resources().get(kind.ray_resource, 0) >= 1:
            return kind
        if options.device != "auto" or options.devices:
            raise NoDevice("--executor ray: the cluster has no GPU; use --device cpu to run CUDA sources on the CPU")
        return KINDS[-1]

    def _count(self, kind: DeviceKind) -> int:
        if kind.ray_resource is not None:
            return int(self._ray.cluster_resources()[kind.ray_resource])
        return len(self._options.devices) or len([node for node in self._ray.nodes() if node["Alive"]])


def _joined(address: str | None) -> Any:
    """Returns the module `ray`, connected to the cluster at the address, or to one that is started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError("--executor ray: Ray is not installed; run pip install 'inlinebench[ray]'") from error
    started_here: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECTS_BYTES}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **({} if address else started_here))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"--ray-address {address}: {_first_line(error)}") from error
    return ray


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
