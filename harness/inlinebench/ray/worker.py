"""What runs on a machine of a Ray cluster: a bench with one judge, and the sources of what it evaluates."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from inlinebench.messages import Evaluate
from inlinebench.records.errors import NoDevice, NoSandbox, UsageError
from inlinebench.records.options import Options
from inlinebench.records.result import Environment, Result
from inlinebench.report.terminal.progress import Progress
from inlinebench.scheduler.executor import LocalExecutor
from inlinebench.version import __version__

Sources = Mapping[Path, bytes]
"""A file, first, and those that it names."""


@dataclass(frozen=True)
class Ready:
    """A worker's device, or why it has none."""

    device: str = ""
    environment: Environment | None = None
    version: str = __version__
    error: Exception | None = None


class Worker:
    """One bench with one judge. Its methods are called one after the other."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="inlinebench-sources-"))
        self._count = 0

    def open(self, options: Options) -> Ready:
        """Starts the judge."""
        try:
            self._executor = LocalExecutor(options, Progress(quiet=True)).__enter__()
        except (NoDevice, NoSandbox, UsageError) as error:
            return Ready(error=error)
        return Ready(self._executor.device, self._executor.workers[0].environment)

    def evaluate(self, job: Evaluate, problem: Sources, solution: Sources | None) -> Result:
        """The result of a job whose sources are these, whether this machine has its files or not."""
        self._count += 1
        try:
            here = replace(
                job, problem=replace(job.problem, path=self._place(problem, "problem")),
                solution=None if solution is None else self._place(solution, "solution"),
                following=None,  # its files aren't here
            )
            return self._executor.evaluate(self._executor.workers[0], here)
        finally:
            shutil.rmtree(self._own_folder(), ignore_errors=True)

    def close(self) -> None:
        """Ends the judge and removes what was written."""
        self._executor.__exit__(None, None, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _own_folder(self) -> Path:
        return self._folder / str(self._count)

    def _place(self, sources: Sources, kind: str) -> Path:
        """The path of the first of the files: where it was if all of them are there as well, else a copy of them."""
        first = next(iter(sources))
        if all(_holds(path, text) for path, text in sources.items()):
            return first
        for path, text in sources.items():
            copy = self._own_folder() / kind / path.relative_to(first.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text)
        return self._own_folder() / kind / first.name


def _holds(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text
    except OSError:
        return False
