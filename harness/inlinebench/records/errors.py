"""Errors that a person is meant to read: one line that says what is wrong and what to do next."""

from __future__ import annotations


class UsageError(Exception):
    """Arguments or files that no run can start with (exit status 2)."""


class NoDevice(Exception):
    """The device that was asked for can't be used (exit status 3)."""


class NoSandbox(Exception):
    """Protections were required that this machine doesn't offer (exit status 3)."""


class JudgeDied(Exception):
    """The judge process ended in the middle of its work."""


class WorkerLost(Exception):
    """A worker on another machine ended, or can't be reached, in the middle of an evaluation."""


class ServerDied(Exception):
    """The server that evaluates for Python's callers ended or failed; the text has what it said last."""
