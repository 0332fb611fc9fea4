"""Limits each step of a problem's own code, from outside the process that runs it.

Such code may hang while it holds the interpreter's lock, or on the GPU, so its own process cannot interrupt it. That
process reports when a step begins and ends (`inlinebench.problem.own_code`); its parent receives this and kills it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

FORWARD_IN_FLOAT64 = "the reference's forward in float64"
"""The step that the judge can do without: the oracle."""
FORWARD_TO_EXPLAIN = "the reference's forward on changed values"
"""The step that tells what a wrong output depends on. The judge can do without it too: the verdict is decided."""
LIMITS_S = {FORWARD_TO_EXPLAIN: 10.0}
"""Limits of steps that are shorter than that of the run, in seconds. Changed values can keep a reference in a loop."""
SHOWN_AFTER_S = 1.0
"""A step that takes longer than this is shown, in seconds."""


@dataclass(frozen=True)
class Step:
    """Judge to scheduler, and probe to judge: a step of the problem's own code begins or has ended."""

    name: str
    """What begins, for messages: `get_inputs()`. Empty if the last step has ended."""


class StepTimedOut(Exception):
    """A step of a problem's own code exceeded its time limit. `step` is its name."""

    def __init__(self, step: str, limit: float) -> None:
        super().__init__(f"{step} takes longer than {limit:g} s (--problem-timeout raises the limit)")
        self.step = step


class Receiver:
    """Receives messages from a process that reports its steps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._step, self._began = Step(""), 0.0
        self._unread: list[Any] = []

    @property
    def step(self) -> str:
        """The name of the step that runs, or "" between steps."""
        return self._step.name

    def has_message(self) -> bool:
        """Whether a message other than a step is there. Raises EOFError or OSError if the process has ended."""
        while not self._unread and self._connection.poll():
            self._read()
        return bool(self._unread)

    def receive(self, limit: float, show: Callable[[str], None], patience: float | None = None) -> Any:
        """Waits for the next message that is not a step, and returns it.

        Raises StepTimedOut, TimeoutError, and EOFError or OSError if the process has ended.

        Args:
            limit: the most seconds that a step may take.
            show: is called with a text about each step that takes longer than a second.
            patience: the most seconds between steps without a message. None: any number.
        """
        while not self._unread:
            most = min(limit, LIMITS_S.get(self._step.name, limit))
            if not self._step.name:
                if not self._connection.poll(patience):
                    raise TimeoutError(f"no message within {patience} s")
            elif not self._wait_until(self._began + min(SHOWN_AFTER_S, most)):
                show(f"problem: {self._step.name}")
                if not self._wait_until(self._began + most):
                    raise StepTimedOut(self._step.name, most)
            self._read()
        return self._unread.pop()

    def _wait_until(self, moment: float) -> bool:
        """Waits for a message of any kind. Returns whether it is there."""
        return self._connection.poll(max(0.0, moment - time.monotonic()))

    def _read(self) -> None:
        message = self._connection.recv()
        if isinstance(message, Step):
            self._step, self._began = message, time.monotonic()
        else:
            self._unread.append(message)
