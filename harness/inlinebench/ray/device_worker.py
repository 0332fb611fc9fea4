"""A worker of Ray's, as the process that hands out evaluations sees it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from inlinebench.device_kinds import DeviceKind
from inlinebench.errors import NoDevice, UsageError, WorkerLost
from inlinebench.messages import Jobs
from inlinebench.options import Options
from inlinebench.ray.cluster import first_line
from inlinebench.ray.worker import Sources, Worker, WorkerReady
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.version import __version__

MOST_LOSSES = 3
"""The number of lost workers after which an evaluation is an internal error."""
OPEN_S = 300.0
"""Seconds for a worker to be scheduled and to start its judge."""
CLOSE_S = 20.0
"""Seconds for a worker to close."""


class RayDeviceWorker:
    """A worker of Ray, which can be replaced when it is lost.

    Ray does not restart it by itself: while Ray restarts an actor, it fails what is sent to it, and that would count as
    another loss. A new actor keeps what is sent to it until it has started.

    Args:
        options: what the worker is opened with.
        kind: its kind of device. One that Ray counts is reserved for it.
        cpus: CPU cores that Ray reserves for it.
        most: how many evaluations it may be sent at a time.
    """

    def __init__(self, ray: Any, options: Options, kind: DeviceKind, cpus: int, most: int = 1) -> None:
        self._ray, self._options = ray, options
        resources = {"num_gpus": 1 if kind.ray_resource else 0, "num_cpus": cpus}
        self._kind = ray.remote(Worker).options(**resources, scheduling_strategy="SPREAD", max_restarts=0,
                                                max_concurrency=most + 1)  # one to close it
        self.device, self.environment = "", Environment("", __version__)
        self.start()

    def start(self) -> None:
        """Starts a worker, which opens its executor in the background."""
        self.actor = self._kind.remote()
        self._opening = self.actor.open.remote(self._options)

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

    def evaluate(self, options: Options, jobs: Jobs, problem: Sources, solution: Sources | None) -> list[Result]:
        """Sends jobs of one solution with these sources and returns their results.

        Raises WorkerLost, and what an executor with these options raises when it is entered.
        """
        try:
            results: list[Result] = self._ray.get(self.actor.evaluate.remote(options, jobs, problem, solution))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:  # the worker or its answer is gone
            raise WorkerLost(first_line(error)) from error
        return results

    def close(self) -> None:
        """Ends the worker and its judge."""
        with suppress(self._ray.exceptions.RayError):  # a lost or hanging worker is killed next
            self._ray.get(self.actor.close.remote(), timeout=CLOSE_S)
        self.kill()

    def kill(self) -> None:
        """Kills the worker, which also ends its judge."""
        self._ray.kill(self.actor)


def after_losses(jobs: Jobs, device: str, losses: Sequence[WorkerLost]) -> list[Result]:
    """Returns the results of jobs that were given up because their workers were lost."""
    reason = f"{len(losses)} workers were lost during this evaluation, the last one because: {losses[-1]}"
    return [Result(job.problem_name, job.solution_name, job.shape_name, device, Verdict.INTERNAL_ERROR, reason,
                   level=job.level, backward=job.problem.backward or None, weight=job.weight) for job in jobs]
