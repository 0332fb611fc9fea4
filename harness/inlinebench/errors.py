"""User-facing errors. Their text is one line that says what is wrong and what to do next."""

from __future__ import annotations


class UsageError(Exception):
    """A run cannot start with these arguments or files (exit status 2)."""


class CannotWrite(Exception):
    """A file can no longer be written, for example because the disk is full (exit status 2)."""


class NoDevice(Exception):
    """The requested device cannot be used (exit status 3)."""


class NoSandbox(Exception):
    """This machine lacks a protection that `--require-sandbox` demands (exit status 3)."""


class JudgeDied(Exception):
    """The judge process ended during its work."""


class WorkerLost(Exception):
    """A worker on another machine ended or became unreachable during an evaluation."""


class ServerDied(Exception):
    """A service does not answer, or failed. The text says what to do."""
