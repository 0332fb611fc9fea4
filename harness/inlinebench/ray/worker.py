"""The worker on a machine of a Ray cluster: an executor with one judge, and copies of the sources."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.messages import Jobs
from inlinebench.options import Options
from inlinebench.results.result import Environment, Result
from inlinebench.scheduler.executor import LocalExecutor
from inlinebench.scheduler.observer import Silent
from inlinebench.version import __version__

Sources = Mapping[Path, bytes]
"""Contents by path."""


@dataclass(frozen=True)
class WorkerReady:
    """The state of a worker that was opened."""

    device: str = ""
    """Its device; empty if there is an error."""
    environment: Environment | None = None
    """Hardware and software of its machine."""
    version: str = __version__
    """Version of inlinebench on its machine."""
    error: Exception | None = None
    """Why its executor could not start."""


class Worker:
    """An executor with one judge. Its methods must not be called concurrently."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="inlinebench-sources-"))
        self._count = 0

    def open(self, options: Options) -> WorkerReady:
        """Starts the executor and its judge."""
        try:
            self._executor = LocalExecutor(options, Silent()).__enter__()
        except (NoDevice, NoSandbox, UsageError) as error:
            return WorkerReady(error=error)
        return WorkerReady(self._executor.device, self._executor.workers[0].environment)

    def evaluate(self, jobs: Jobs, problem: Sources, solution: Sources | None) -> list[Result]:
        """Returns the results of jobs of one solution with these sources. This machine may lack the files."""
        self._count += 1
        try:
            path = self._place(jobs[0].problem.path, problem, "problem")
            own = None if solution is None else self._place(jobs[0].file, solution, "solution")
            here = tuple(replace(job, problem=replace(job.problem, path=path), solution=own,
                                 following=None)  # its files may be missing here
                         for job in jobs)
            return self._executor.evaluate(self._executor.workers[0], here)
        finally:
            shutil.rmtree(self._own_folder(), ignore_errors=True)

    def close(self) -> None:
        """Ends the judge and removes all copies."""
        self._executor.__exit__(None, None, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _own_folder(self) -> Path:
        return self._folder / str(self._count)

    def _place(self, file: Path, sources: Sources, kind: str) -> Path:
        """Returns the path of a file: the original if this machine has all its sources unchanged, else a copy."""
        if all(_holds(path, text) for path, text in sources.items()):
            return file
        above = Path(os.path.commonpath([file.parent, *(path.parent for path in sources)]))
        for path, text in sources.items():
            copy = self._own_folder() / kind / path.relative_to(above)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text)
        return self._own_folder() / kind / file.relative_to(above)


def _holds(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text
    except OSError:
        return False
