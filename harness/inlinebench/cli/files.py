"""Reads and writes the files of the commands."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from inlinebench.cli.exits import say
from inlinebench.errors import UsageError
from inlinebench.results import jsonl
from inlinebench.results.result import Result


def read(path: Path) -> list[Result]:
    """The results of a file, in order. A half-written last line is left out, with a warning on stderr.

    Raises UsageError if the file does not exist or holds anything else.
    """
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = list(jsonl.read(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a file written by --out") from error
    except ValueError as error:
        raise UsageError(f"{error}; name a file that --out wrote, with this version or an older one") from error
    for warning in warned:
        say(str(warning.message))
    return found


def read_all(paths: Sequence[Path]) -> list[Result]:
    """The results of several files, one after the other. Raises UsageError, also if none of them has any."""
    found = [result for path in paths for result in read(path)]
    if not found:
        raise UsageError(f"no results in {', '.join(map(str, paths))}; name files written by --out")
    return found


def check_apart(out: Path, *read: Path) -> None:
    """Raises UsageError if a file to write is one of those that are read."""
    if out.resolve() in [path.resolve() for path in read]:
        raise UsageError(f"{out}: is one of the input files and would be overwritten; name another file")


def write(path: Path, text: str) -> None:
    """Writes a file atomically. Raises UsageError if that fails."""
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", text=True)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        if name is not None:
            os.unlink(name)
        raise UsageError(f"{path}: cannot be written ({error.strerror}); name a file in a writable folder"
                         ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
