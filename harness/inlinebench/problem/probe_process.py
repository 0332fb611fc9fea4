"""The judge's end of the rehearsal: starts it, asks, and starts another when a trial has killed it."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as make_pipe
from typing import TYPE_CHECKING

from inlinebench.messages import ProblemAt
from inlinebench.process.launcher import Launcher
from inlinebench.wire.processes import Child

if TYPE_CHECKING:
    from inlinebench.problem.probe import CannotRun, Done, ProbeResult, Trial

ENTRY = "inlinebench.problem.probe_main:serve_judge"
LONGEST_S = 600.0
"""A probe that takes longer hangs."""


class ProbeProcess:
    """One process for many rehearsals, replaced when it dies."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._told: list[object] = []
        self._question: tuple[ProblemAt, bool, int | None] | None = None
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wake(self, device: str) -> None:
        """The device that is wanted, as the settings name it, which it gets ready from now on; to be told first."""
        self._tell((device, dict(os.environ)))

    def use(self, device: str, tf32: bool) -> None:
        """The device, by its name, and whether TF32 is on; to be told before the first rehearsal."""
        self._tell((device, tf32))

    def begin(self, problem: ProblemAt, variants: bool, most: int | None = None) -> None:
        """Has it rehearse a problem, which may take so many bytes of the device's memory, unless it is just doing that.
        """
        question = problem, variants, most
        if self._question == question:
            return
        if self._question is not None:
            self._restart()  # nobody waits for that answer any longer
        self._question = question
        self._ask(problem, variants, set(), most)

    def has_answered(self) -> bool:
        """Whether there is no need to wait for the rehearsal that was begun."""
        return self._connection.poll()

    def finish(self) -> ProbeResult | CannotRun:
        """Waits for what came of the rehearsal that was begun; trials that kill the process count as refused by the
        reference."""
        assert self._question is not None
        (problem, variants, most), self._question = self._question, None
        from inlinebench.problem.probe import CannotRun, Done

        excluded: set[Trial] = set()
        died_of_itself = False
        while True:
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
            self._ask(problem, variants, excluded, most)

    def close(self) -> None:
        """Ends the process."""
        self._connection.close()
        self._process.end()

    def _tell(self, facts: object) -> None:
        """Tells it, and whatever is started in its place."""
        self._told.append(facts)
        self._connection.send(facts)

    def _ask(self, *question: object) -> None:
        try:
            self._connection.send(question)
        except OSError:  # it has died since it answered last
            self._restart()
            self._connection.send(question)

    def _await(self) -> Done | Trial | None:
        """The outcome, or the trial that killed the process (None: something before the trials)."""
        from inlinebench.problem.probe import Done, Trying

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
        self._process = Child(self._launcher.serve(ENTRY, theirs.fileno()))
        theirs.close()
        self._connection: Connection = ours

    def _restart(self) -> None:
        self.close()
        self._start()
        for facts in self._told:
            self._connection.send(facts)
