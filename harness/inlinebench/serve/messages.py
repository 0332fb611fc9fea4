"""What caller and server say to each other. Both are the user's, and the key keeps others out: pickles will do."""

from __future__ import annotations

from dataclasses import dataclass

from inlinebench.records.options import Options
from inlinebench.records.result import Result


@dataclass(frozen=True)
class Request:
    """Evaluate what the options name; `source` is the solution's text where it is in no file."""

    options: Options
    source: str | None = None


@dataclass(frozen=True)
class Taken:
    """The server has the request, and will answer it."""


@dataclass(frozen=True)
class Reply:
    """The result, or the error of `inlinebench.records.errors` that it ended with, or the traceback of another."""

    result: Result | None = None
    error: Exception | None = None
    traceback: str = ""
