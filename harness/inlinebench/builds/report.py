"""The outcome of building a solution without evaluating it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from inlinebench.builds.request import BuildOutcome


class State(str, Enum):
    """Whether the libraries that a solution asked for are in the cache."""

    BUILT = "built"
    """The solution was constructed, and its libraries are in the cache."""
    FAILED = "failed"
    """A build or the constructor failed."""
    SKIPPED = "skipped"
    """The solution cannot run on the CPU."""
    LATER = "later"
    """Its constructor needs a GPU, and builds see no GPU."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class BuildReport:
    """The outcome of building one solution."""

    problem: str
    """Name of the problem."""
    solution: str
    """Name of the solution."""
    state: State
    """Whether its libraries are in the cache."""
    reason: str = ""
    """Why it was not built, or a remark; may be empty."""
    builds: tuple[BuildOutcome, ...] = ()
    """The outcomes of its builds."""
