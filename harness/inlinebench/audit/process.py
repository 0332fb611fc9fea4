"""Audits problems in a process that may crash or hang: it is then replaced, and the other problems are audited."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Pipe

from inlinebench.audit.records import Audit, Audited, AuditReady, Checking, Flaw
from inlinebench.errors import NoDevice
from inlinebench.messages import ProblemAt
from inlinebench.sandbox.policy import clean_environment
from inlinebench.wire.own_python import own_python
from inlinebench.wire.processes import become_subreaper, kill_tree, reap

START_S = 300.0
"""The most seconds for the start of a process, which imports torch and may start CUDA."""


class Auditor:
    """Audits problems on a device. Use it as a context manager.

    Args:
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        timeout: the most seconds for one problem at one shape.

    Raises NoDevice if the device cannot be used.
    """

    def __init__(self, device: str, timeout: float) -> None:
        self._wanted, self._timeout = device, timeout
        become_subreaper()  # adopts what a problem's code started
        self._folder = tempfile.TemporaryDirectory(prefix="inlinebench-", ignore_cleanup_errors=True)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        self._start()

    def __enter__(self) -> Auditor:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._log.close()
        self._folder.cleanup()

    def audit(self, name: str, shape: str, problem: ProblemAt) -> Audit:
        """Returns what the audit of a problem at a shape finds, also if the problem ends the process."""
        begin, step, found = time.monotonic(), "", list[Flaw]()
        constants = problem.constants if problem.alternatives else {}
        try:
            self._connection.send(problem)
        except OSError:  # the process has ended since its last message
            self._kill()
            self._start()
            self._connection.send(problem)
        while True:
            left = self._timeout - (time.monotonic() - begin)
            message = self._receive(left)
            if isinstance(message, Flaw):
                found.append(message)
            elif isinstance(message, Checking):
                step = message.name
            elif isinstance(message, Audited):
                constants = message.constants if problem.alternatives else {}
                break
            else:
                found.append(_unfinished(step, message))
                self._kill()
                self._start()
                break
        return Audit(name, shape, tuple(found), time.monotonic() - begin, dict(constants))

    def _receive(self, seconds: float) -> object:
        """Returns the next message, or a text about why there is none."""
        try:
            if self._connection.poll(max(0.0, seconds)):
                return self._connection.recv()
            return f"did not finish within {self._timeout:g} s"
        except (EOFError, OSError):
            return f"ended the process (exit status {self._process.wait()})"

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.audit", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=clean_environment(os.environ) | own_python() | {"TMPDIR": self._folder.name}, start_new_session=True,
        )
        theirs.close()
        self._connection.send(self._wanted)
        try:
            ready = self._connection.recv() if self._connection.poll(START_S) else None
        except EOFError:
            ready = None
        if not isinstance(ready, AuditReady):
            log = self._tail()
            self._kill()
            raise NoDevice(f"the audit process did not start: {log or 'it printed nothing'}")
        if ready.unusable:
            self._kill()
            raise NoDevice(ready.unusable)
        self.device = ready.device

    def _tail(self) -> str:
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - 4096))
        return self._log.read().decode(errors="replace").strip()

    def _kill(self) -> None:
        below = kill_tree(self._process.pid)
        self._process.wait()
        reap(below)
        self._connection.close()


def _unfinished(step: str, reason: object) -> Flaw:
    """Returns the finding that a problem ended its process. It is a fault if the reference does that by itself."""
    if not step:
        return Flaw("does not run", True, f"the problem {reason}")
    return Flaw("not checked", False, f"the check of {step} {reason}; later checks were not run")
