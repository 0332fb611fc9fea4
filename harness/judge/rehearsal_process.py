"""The judge's end of the rehearsal: starts it, asks, and starts another when a trial has killed it."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as make_pipe
from typing import TYPE_CHECKING

from harness.judge.launcher import Launcher
from harness.judge.messages import ProblemAt
from harness.wire.processes import Child

if TYPE_CHECKING:
    from harness.judge.rehearsal import CannotRun, Done, Rehearsed, Trial

LONGEST_S = 600.0
"""A rehearsal that takes longer hangs."""


class RehearsalProcess:
    """One process for many rehearsals, replaced when it dies."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._facts: tuple[str, bool, dict[str, str]] | None = None
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def use(self, device: str, tf32: bool) -> None:
        """The device, by its name, and whether TF32 is on; to be told before the first rehearsal."""
        self._facts = device, tf32, dict(os.environ)
        self._connection.send(self._facts)

    def rehearse(
        self, problem: ProblemAt, variants: bool, most: int | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Rehearsed | CannotRun:
        """Rehearses a problem, which may take so many bytes of the device's memory; trials that kill the process count
        as refused by the reference. `meanwhile` is done once, while the process is at work."""
        from harness.judge.rehearsal import CannotRun, Done

        excluded: set[Trial] = set()
        died_of_itself = False
        while True:
            self._ask(problem, variants, excluded, most)
            if meanwhile is not None:
                meanwhile()
                meanwhile = None
            found = self._await()
            if isinstance(found, Done):
                if not found.healthy:
                    self._restart()
                return found.outcome
            self._restart()
            if found is None and not died_of_itself:
                died_of_itself = True  # it may have been the problem before
            elif found is None or found in excluded:
                return CannotRun(f"{problem.path}: the reference crashes or hangs on its own inputs")
            else:
                excluded.add(found)

    def close(self) -> None:
        """Ends the process."""
        self._connection.close()
        self._process.end()

    def _ask(self, *question: object) -> None:
        try:
            self._connection.send(question)
        except OSError:  # it has died since it answered last
            self._restart()
            self._connection.send(question)

    def _await(self) -> Done | Trial | None:
        """The outcome, or the trial that killed the process (None: something before the trials)."""
        from harness.judge.rehearsal import Done, Trying

        last: Trial | None = None
        while self._connection.poll(LONGEST_S):
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                return last
            if not isinstance(message, Trying):
                assert isinstance(message, Done)
                return message
            last = message.trial
        return last

    def _start(self) -> None:
        ours, theirs = make_pipe()
        self._process = Child(self._launcher.rehearsal(theirs.fileno()))
        theirs.close()
        self._connection: Connection = ours

    def _restart(self) -> None:
        self.close()
        self._start()
        self._connection.send(self._facts)
