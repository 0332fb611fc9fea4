"""The process of a judge. It imports torch, which takes seconds, before it is told anything, so it is started early."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Pipe
from pathlib import Path

from inlinebench.records.options import RAY, Options
from inlinebench.sandbox.policy import clean_environment
from inlinebench.scheduler import bytecode
from inlinebench.wire.processes import become_subreaper, bury, kill_tree

LOG_TAIL_BYTES = 4096


class JudgeProcess:
    """It runs from now on until `kill`; its temporary files lie below `scratch`. `connection` leads to it.

    In `cache` Python's modules are kept compiled, if they aren't anywhere else.
    """

    def __init__(self, scratch: Path, cache: Path) -> None:
        become_subreaper()  # of what a judge that dies leaves
        self.connection, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the judge lives
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.judge", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=clean_environment(environment(scratch)) | {"TMPDIR": str(scratch)} | bytecode.environment(cache),
            start_new_session=True,
        )
        theirs.close()

    def wait(self) -> int:
        """Its exit status, when it has ended."""
        return self._process.wait()

    def log(self) -> str:
        """The tail of what the judge, the problems and the references printed."""
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace").strip()

    def kill(self) -> None:
        """Ends the judge with its rehearsal, its candidates and all that these started.

        There is no gentler end: all that they write lies below `scratch`, and to take torch and CUDA down piece by
        piece takes most of a second.
        """
        below = kill_tree(self._process.pid)
        self._process.wait()
        bury(below)
        self.connection.close()


class Scratch:
    """A folder for what judges write, and the process of the first of them, started at once.

    In `cache` Python's modules are kept compiled, if they aren't anywhere else.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._folder = tempfile.TemporaryDirectory(prefix="inlinebench-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        self._first: JudgeProcess | None = JudgeProcess(self.path, cache)

    def process(self) -> JudgeProcess:
        """The process of one more judge, which is the caller's to kill."""
        first, self._first = self._first, None
        return first or JudgeProcess(self.path, self._cache)

    def close(self) -> None:
        """Removes the folder; to be called when all judges were killed."""
        if self._first is not None:
            self._first.kill()
            self._first = None
        self._folder.cleanup()


@contextmanager
def head_start(options: Options) -> Iterator[Scratch | None]:
    """What a bench on this machine begins with, before it is there; None for one elsewhere."""
    if options.executor == RAY:
        yield None
        return
    scratch = Scratch(options.cache)
    try:
        yield scratch
    finally:
        scratch.close()


def environment(scratch: Path) -> dict[str, str]:
    """Ours, in which a judge finds the harness and its folder."""
    package = str(Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)}
