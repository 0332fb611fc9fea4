"""Evaluates on a Ray cluster, for a trainer that runs on it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from inlinebench.errors import UsageError
from inlinebench.ray.workers import RayWorkers, each_has
from inlinebench.results.result import Result
from inlinebench.serve.evaluator import Evaluator
from inlinebench.serve.request import Request, in_fields, request
from inlinebench.serve.reuse import Answered


class Pool(Evaluator):
    """Evaluates solutions on the workers of a Ray cluster. A context manager; on exit all workers are ended.

    The cluster is the one that this process is connected to, as a driver or in an actor or task of its own. Otherwise
    it is the one at `address`, and without an address Ray is started on this machine.

    Entering raises TypeError, UsageError, NoDevice and NoSandbox as `inlinebench.evaluate` does, UsageError if Ray is
    not installed or the cluster cannot be joined, and NoDevice if a worker has not started after 300 s, as when the
    cluster has too few free GPUs or cores.

    Args:
        workers: how many workers. Each has one GPU, unless `device="cpu"`.
        cpus: CPU cores that Ray reserves for each worker. As many solutions are built at the same time. A worker has
            one evaluation more than that, whose solution is built, and further calls wait.
        address: the address of the cluster.
        reuse: as for `Evaluator`.
        settings: settings of all evaluations, as those of `inlinebench.evaluate`. `device` may be `"auto"`, `"cuda"`
            or `"cpu"`.
    """

    def __init__(
        self, *, workers: int = 1, cpus: int = 1, address: str | None = None, reuse: bool = False, **settings: Any
    ) -> None:
        super().__init__(reuse=reuse, **settings)
        if workers < 1 or cpus < 1:
            raise UsageError("workers and cpus are at least 1")
        self._count, self._cpus, self._address = workers, cpus, address
        self.at_a_time = workers * each_has(cpus)
        """How many evaluations the workers have at a time. More calls wait."""
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Pool:
        with in_fields():
            options = request("", "\n", self._settings).options  # of no evaluation: checks the settings
            self._executors = RayWorkers(options, self._address, self._count, self._cpus)
        self._threads = ThreadPoolExecutor(self.at_a_time)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        super().__exit__(kind, error, trace)

    def answer(self, asked: Request, caller: str = "") -> Answered:
        """As `Evaluator.answer`. Raises UsageError if the pool is not open."""
        if self._threads is None:
            raise UsageError("the pool is not open; evaluate inside of `with Pool(...)`")
        return super().answer(asked, caller)

    async def evaluate_async(
        self, problem: str | Path, solution: str | Path | None = None, *, response: str | None = None, **settings: Any
    ) -> Result:
        """As `evaluate`, without blocking the event loop."""
        asked = partial(self.evaluate, problem, solution, response=response, **settings)
        return await asyncio.get_running_loop().run_in_executor(self._threads, asked)
