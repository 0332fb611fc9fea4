"""Messages between client and server, as pickles. Pickles are safe here: both processes belong to the user, and nobody
else has the key."""

from __future__ import annotations

from dataclasses import dataclass

from inlinebench.options import Options
from inlinebench.results.result import Result


@dataclass(frozen=True)
class Request:
    """A request to evaluate one solution."""

    options: Options
    """The options, which name the problem and the solution file."""
    source: str | None = None
    """The source text of the solution, if it is not in a file."""


@dataclass(frozen=True)
class Taken:
    """The server has accepted the request and will reply."""


@dataclass(frozen=True)
class Reply:
    """The reply to a request: a result, an error or a traceback."""

    result: Result | None = None
    """The result of the evaluation."""
    error: Exception | None = None
    """An error of `inlinebench.errors`, which the client raises."""
    traceback: str = ""
    """The traceback of any other exception."""
