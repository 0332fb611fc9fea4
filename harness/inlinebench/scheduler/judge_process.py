"""The process of a judge. It is started early, because it imports torch first, which takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Pipe
from pathlib import Path

from inlinebench.options import RAY, Options
from inlinebench.sandbox.policy import clean_environment
from inlinebench.wire.own_python import own_python
from inlinebench.wire.processes import become_subreaper, kill_tree, reap

LOG_TAIL_BYTES = 4096
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads of OpenMP that have nothing to do sleep, unless the user's environment says otherwise. By default they spin,
and take the cores from other processes: a check with two judges on two cores took 43 s instead of 17 s."""


class JudgeProcess:
    """A judge process, from its start in the constructor until `kill`. `connection` is the pipe to it.

    Its temporary files are in `scratch`.
    """

    def __init__(self, scratch: Path) -> None:
        become_subreaper()  # adopts the descendants of a judge that dies
        self.connection, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the judge runs
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.judge", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=WAITING | clean_environment(os.environ) | own_python() | {"TMPDIR": str(scratch)},
            start_new_session=True,
        )
        theirs.close()

    def wait(self) -> int:
        """Waits for the end of the process and returns its exit status."""
        return self._process.wait()

    def log(self) -> str:
        """Returns the end of the output of the judge, the problems and the references."""
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace").strip()

    def kill(self) -> None:
        """Kills the judge and all its descendants: probe, candidates and their children.

        A regular exit would gain nothing: all their files are in `scratch`, and shutting down torch and CUDA takes most
        of a second.
        """
        below = kill_tree(self._process.pid)
        self._process.wait()
        reap(below)
        self.connection.close()


class Scratch:
    """The folder for judges' temporary files, and the process of the first judge, which starts at once."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="inlinebench-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        self._first: JudgeProcess | None = JudgeProcess(self.path)

    def process(self) -> JudgeProcess:
        """Returns another judge process. The caller must kill it."""
        first, self._first = self._first, None
        return first or JudgeProcess(self.path)

    def close(self) -> None:
        """Removes the folder. Call it after all judges were killed."""
        if self._first is not None:
            self._first.kill()
            self._first = None
        self._folder.cleanup()


@contextmanager
def head_start(options: Options) -> Iterator[Scratch | None]:
    """Yields the scratch folder and first judge process of a local executor, before that exists; None with Ray."""
    if options.executor == RAY:
        yield None
        return
    scratch = Scratch()
    try:
        yield scratch
    finally:
        scratch.close()


def environment(scratch: Path) -> dict[str, str]:
    """Returns this process's environment with a judge's scratch folder, and without the import path of a judge's start.
    """
    return {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "TMPDIR": str(scratch)}
