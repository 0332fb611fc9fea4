"""Who is told about the progress of a run. The command line hands in its display."""

from __future__ import annotations

from typing import Protocol

from inlinebench.results.result import Result


class Observer(Protocol):
    """Is told what a run does. Called from several threads."""

    def start(self, total: int) -> None:
        """A part of the run begins that has `total` results."""

    def phase(self, text: str) -> None:
        """Another part of the run begins (`building 3 solutions`)."""

    def update(self, text: str) -> None:
        """The current activity is another one."""

    def finished(self, result: Result) -> None:
        """There is another result."""

    def line(self, text: str) -> None:
        """A message for the user, in lines."""


class Silent:
    """Tells nobody."""

    def start(self, total: int) -> None:
        """Does nothing."""

    def phase(self, text: str) -> None:
        """Does nothing."""

    def update(self, text: str) -> None:
        """Does nothing."""

    def finished(self, result: Result) -> None:
        """Does nothing."""

    def line(self, text: str) -> None:
        """Does nothing."""
