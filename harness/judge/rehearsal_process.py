"""The judge's end of the rehearsal: starts it, asks, and starts another when a trial has killed it."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as make_pipe

import torch

from harness.judge.messages import ProblemAt
from harness.judge.rehearsal import CannotRun, Rehearsed, Trial, Trying

LONGEST_S = 600.0
"""A rehearsal that takes longer hangs."""


class RehearsalProcess:
    """One process for many rehearsals, replaced when it dies."""

    def __init__(self, device: torch.device, tf32: bool) -> None:
        self._device, self._tf32 = device, tf32
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def rehearse(self, problem: ProblemAt, variants: bool) -> Rehearsed | CannotRun:
        """Rehearses a problem; trials that kill the process count as refused by the reference."""
        excluded: set[Trial] = set()
        while True:
            self._connection.send((problem, variants, excluded))
            outcome = self._await()
            if isinstance(outcome, Rehearsed | CannotRun):
                return outcome
            self._restart()
            if outcome is None or outcome in excluded:
                return CannotRun(f"{problem.path}: the reference crashes or hangs on its own inputs")
            excluded.add(outcome)

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _await(self) -> Rehearsed | CannotRun | Trial | None:
        """The outcome, or the trial that killed the process (None: something before the trials)."""
        last: Trial | None = None
        while self._connection.poll(LONGEST_S):
            try:
                message = self._connection.recv()
            except EOFError:
                return last
            if not isinstance(message, Trying):
                assert isinstance(message, Rehearsed | CannotRun)
                return message
            last = message.trial
        return last

    def _start(self) -> None:
        ours, theirs = make_pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.judge.rehearsal_main", str(theirs.fileno()), str(self._device),
             "tf32" if self._tf32 else "exact"],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=sys.stderr,
        )
        theirs.close()
        self._connection: Connection = ours

    def _restart(self) -> None:
        self.close()
        self._start()
