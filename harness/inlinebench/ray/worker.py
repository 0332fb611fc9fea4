"""The worker on a machine of a Ray cluster: executors with one judge each, and copies of the sources."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.messages import Jobs
from inlinebench.options import Options
from inlinebench.results.result import Environment, Result
from inlinebench.serve.executors import Executors
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
    """Evaluates with one judge for each set of options, as the service does. Its methods may be called concurrently.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="inlinebench-sources-", ignore_cleanup_errors=True)
        self._executors = Executors()
        self._lock = Lock()

    def open(self, options: Options) -> WorkerReady:
        """Starts the executor of these options and its judge."""
        try:
            with self._executors.opened(options) as warm:
                return WorkerReady(warm.executor.device, warm.workers[0].worker.environment)
        except (NoDevice, NoSandbox, UsageError) as error:
            return WorkerReady(error=error)

    def evaluate(self, options: Options, jobs: Jobs, problem: Sources, solution: Sources | None) -> list[Result]:
        """Returns the results of jobs of one solution with these sources. This machine may lack the files.

        Raises what an executor with these options raises when it is entered.
        """
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            path = self._place_problem(jobs[0].problem.path, problem, Path(folder))
            own = None if solution is None else _place(jobs[0].file, solution, Path(folder) / "solution")
            here = tuple(replace(job, problem=replace(job.problem, path=path), solution=own,
                                 following=None)  # its files may be missing here
                         for job in jobs)
            with self._executors.opened(options) as warm:
                return warm.results(here)

    def close(self) -> None:
        """Ends the judges and removes all copies."""
        self._executors.close()
        self._folder.cleanup()

    def _place_problem(self, file: Path, sources: Sources, folder: Path) -> Path:
        """Returns the path of a problem. Equal copies have one path, by which a judge knows what it has prepared."""
        facts = repr([(str(path), hashlib.sha256(text).hexdigest()) for path, text in sorted(sources.items())])
        kept = Path(self._folder.name) / hashlib.sha256(facts.encode()).hexdigest()
        with self._lock:
            path = _place(file, sources, folder / "problem")
            if path == file:
                return file
            if not kept.exists():
                (folder / "problem").rename(kept)  # complete
        return kept / path.relative_to(folder / "problem")


def _place(file: Path, sources: Sources, folder: Path) -> Path:
    """Returns the path of a file: the original if this machine has all its sources unchanged, else a copy in the
    folder."""
    if all(_holds(path, text) for path, text in sources.items()):
        return file
    above = Path(os.path.commonpath([file.parent, *(path.parent for path in sources)]))
    for path, text in sources.items():
        copy = folder / path.relative_to(above)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(text)
    return folder / file.relative_to(above)


def _holds(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text
    except OSError:
        return False
