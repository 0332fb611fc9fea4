"""The judge's side of the probe: starts the probe process, sends it problems, and replaces it when it dies."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as make_pipe
from typing import TYPE_CHECKING

from inlinebench.messages import ProblemAt
from inlinebench.process.launcher import Launcher
from inlinebench.process.steps import Receiver, StepTimedOut
from inlinebench.wire.processes import Child, kill_tree, reap

if TYPE_CHECKING:
    from inlinebench.problem.probe.records import CannotRun, ProbeDone, ProbeResult, Trial

ENTRY = "inlinebench.problem.probe.main:serve_judge"
LONGEST_S = 600.0
"""A probe that sends nothing for longer than this between steps of the problem's own code counts as hanging."""


class ProbeProcess:
    """One process that probes many problems. It is replaced when it dies."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._setup: list[object] = []
        self._request: tuple[ProblemAt, bool, int | None] | None = None
        self._trying: Trial | None = None
        self._is_fresh = True
        """Whether the current process has not probed a problem yet."""
        self._start()

    @property
    def pid(self) -> int:
        """The id of the current process."""
        return self._process.pid

    def wake(self, device: str) -> None:
        """Starts the device, given as in the settings, without waiting for it. Call this first."""
        self._send_setup((device, dict(os.environ)))

    def use(self, device: str, tf32: bool) -> None:
        """Sets the device, by its full name, and whether TF32 is on. Call this before the first `begin`."""
        self._send_setup((device, tf32))

    def begin(self, problem: ProblemAt, variants: bool, most: int | None = None) -> None:
        """Starts to probe a problem without waiting, unless this probe already runs.

        Args:
            problem: the problem to probe.
            variants: whether to try input variants.
            most: the most device memory that the problem may use, in bytes.
        """
        request = problem, variants, most
        if self._request == request:
            return
        if self._request is not None:
            self._restart()  # otherwise the reply to the old request would be taken for the new one's
        self._request = request
        self._ask(problem, variants, set(), most)

    def has_answered(self) -> bool:
        """Whether a message from the process is available, so that `finish` need not wait for one."""
        try:
            return self._receiver.has_message()
        except (EOFError, OSError):
            return True  # `finish` learns the same without waiting

    def finish(self, limit: float, show: Callable[[str], None]) -> ProbeResult | CannotRun:
        """Waits for the outcome of the probe that was begun.

        If a trial kills the process or exceeds the limit, the probe is repeated without that trial, as if the reference
        had refused it.

        Args:
            limit: the most seconds that each step of the problem's own code may take.
            show: is called with a text about each step that takes longer than a second.
        """
        assert self._request is not None
        (problem, variants, most), self._request = self._request, None
        from inlinebench.problem.probe.records import CannotRun, ProbeDone

        excluded: set[Trial] = set()
        fresh, repeated = self._is_fresh, False
        while True:
            hangs = False
            try:
                found = self._await(limit, show)
            except StepTimedOut as error:
                if self._trying is None:
                    self._restart()
                    return CannotRun(f"{problem.path}: {error}", beyond_limits=True)
                found, hangs = self._trying, True
            if isinstance(found, ProbeDone):
                self._is_fresh = False
                if not found.healthy:
                    self._restart()
                return found.outcome
            step = self._receiver.step or "the reference"
            self._restart()
            if not hangs and not repeated and (found is None or not fresh):
                repeated = True  # the previous problem may be the cause, so it gets a second chance
            elif found is None or found in excluded:
                ends = "hangs" if hangs else "ends the process"
                return CannotRun(f"{problem.path}: {step} {ends}; run the file by itself to see why")
            else:
                excluded.add(found)
            self._ask(problem, variants, excluded, most)

    def close(self) -> None:
        """Ends the process and all its descendants, such as compilers that the problem's code started."""
        self._connection.close()
        below = kill_tree(self._process.pid) if self._process.is_running() else ()
        self._process.end()
        reap(below)

    def _send_setup(self, facts: object) -> None:
        """Sends a message that every replacement of the process gets as well."""
        self._setup.append(facts)
        self._connection.send(facts)

    def _ask(self, *request: object) -> None:
        try:
            self._connection.send(request)
        except OSError:  # the process has died since its last reply
            self._restart()
            self._connection.send(request)

    def _await(self, limit: float, show: Callable[[str], None]) -> ProbeDone | Trial | None:
        """Returns the outcome, or the trial that crashed (None: the process died before the trials).

        Raises StepTimedOut if the problem's code exceeds the limit, in a trial if `_trying` is one.
        """
        from inlinebench.problem.probe.records import ProbeDone, Trying

        self._trying = None
        while True:
            try:
                message = self._receiver.receive(limit, show, LONGEST_S)
            except (EOFError, OSError):
                return self._trying
            if not isinstance(message, Trying):
                assert isinstance(message, ProbeDone)
                return message
            self._trying = message.trial

    def _start(self) -> None:
        ours, theirs = make_pipe()
        self._process = Child(self._launcher.serve(ENTRY, theirs.fileno()))
        theirs.close()
        self._connection: Connection = ours
        self._receiver = Receiver(ours)

    def _restart(self) -> None:
        self.close()
        self._is_fresh = True
        self._start()
        for facts in self._setup:
            self._connection.send(facts)
