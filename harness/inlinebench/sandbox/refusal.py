"""Says of an exception whether the sandbox caused it, for whoever reads the reason."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from inlinebench.sandbox.policy import Policy, Protection

_WRITES = "write only to its own folder, its working folder and $TMPDIR"
CANNOT_WRITE = f"a solution may {_WRITES}"
CANNOT_USE = f"a solution may read only its own folder and the system's files, and {_WRITES}"


def describe(error: BaseException, policy: Policy) -> str:
    """What the sandbox refused, if that is why an exception was raised; else empty.

    Exceptions that were being handled when it was raised count as well: code often raises its own for one of Python's.
    A file that the user may not touch anyway is not refused by the sandbox, and neither is one that the policy grants.
    """
    if Protection.FILES not in policy.protections:
        return ""
    for each in _chain(error):
        if isinstance(each, PermissionError):
            for path in (Path(os.fsdecode(name)) for name in (each.filename, each.filename2)
                         if isinstance(name, str | bytes)):
                if refused := _refused(path, policy):
                    return f"the sandbox refused {str(path)!r}: {refused}"
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        following = following.__cause__ or following.__context__


def _refused(path: Path, policy: Policy) -> str:
    """The rule that keeps a solution from a path that its user could use otherwise; empty if there is none."""
    path = Path(os.path.realpath(path))
    if _is_below(path, policy.writable):
        return ""
    if _is_below(path, policy.readable):
        return CANNOT_WRITE if _user_may(path, os.W_OK) else ""
    return CANNOT_USE if _user_may(path, os.R_OK) else ""


def _is_below(path: Path, places: Iterable[str]) -> bool:
    return any(path.is_relative_to(os.path.realpath(place)) for place in places)


def _user_may(path: Path, mode: int) -> bool:
    """Whether the user has a right over a file, or over the folder where it would be made. Landlock leaves this answer
    alone. Root has every right, and has only lost it to the sandbox."""
    there = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    return os.geteuid() == 0 or os.access(there, mode)
