"""Explains whether the sandbox caused an exception, for a result's reason."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from inlinebench.sandbox.policy import Policy, Protection

_WRITES = "write only to its own folder, its working folder and $TMPDIR"
CANNOT_WRITE = f"a solution may {_WRITES}"
CANNOT_USE = f"a solution may read only its own folder and the system's files, and {_WRITES}"


def describe(error: BaseException, policy: Policy) -> str:
    """Returns which access the sandbox refused, if that caused an exception, or "".

    Exceptions in the chain of causes and contexts count too, because code often replaces Python's exceptions with its
    own. A refusal is not the sandbox's if the user has no access to the file anyway, or if the policy grants it.
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
    """Returns the rule that keeps a solution from a path that its user could access otherwise, or ""."""
    path = Path(os.path.realpath(path))
    if _is_below(path, policy.writable):
        return ""
    if _is_below(path, policy.readable):
        return CANNOT_WRITE if _user_may(path, os.W_OK) else ""
    return CANNOT_USE if _user_may(path, os.R_OK) else ""


def _is_below(path: Path, folders: Iterable[str]) -> bool:
    return any(path.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _user_may(path: Path, mode: int) -> bool:
    """Whether the user has access to a file, or to the folder where it would be created. Landlock does not affect this
    check. Root has every right outside of the sandbox."""
    existing = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    return os.geteuid() == 0 or os.access(existing, mode)
