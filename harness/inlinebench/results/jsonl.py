"""Reads and writes results as JSON Lines.

Each result is written as soon as it is known, so an interrupted run keeps all results up to then.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import final

from inlinebench.errors import CannotWrite, UsageError
from inlinebench.results.result import Result
from inlinebench.results.result_json import from_json, to_json

_START = '{"schema": '
"""The beginning of every line that `to_json` writes."""


@final
class JsonLines:
    """A context manager that appends results to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def __enter__(self) -> JsonLines:
        """Opens the file, and ends a half-written last line of an interrupted run.

        Raises UsageError if the file cannot be written, or holds something else than results.
        """
        try:
            if not _may_hold_results(self.path):
                raise UsageError(f"--out {self.path}: contains something other than results, so nothing is appended; "
                                 "name another file")
            self._file = self.path.open("ab", buffering=0)  # after a failure nothing is left that is written later
            if _unfinished(self.path):
                self._append(b"\n")
        except OSError as error:
            self.close()
            raise UsageError(
                f"--out {self.path}: can't be written ({error.strerror}); name a file in a folder that you can write to"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, result: Result) -> None:
        """Appends one result.

        Raises ValueError if the result contains NaN or infinity, CannotWrite if the disk is full.
        """
        try:
            self._append(to_json(result).encode() + b"\n")
        except OSError as error:
            raise CannotWrite(f"--out {self.path}: can't be written ({error.strerror}); free some space, then use "
                              "--resume to continue") from error

    def close(self) -> None:
        """Closes the file. Further calls do nothing."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _append(self, line: bytes) -> None:
        if self._file is None:
            raise ValueError(f"{self.path} is not open: use JsonLines in a `with` statement")
        rest = memoryview(line)
        while rest:
            rest = rest[self._file.write(rest) :]


def read(path: Path) -> Iterator[Result]:
    """Yields the results of a file, in order. Skips blank lines.

    Skips half-written lines, with a warning: an interrupted run leaves one at the end of its output, and a later run
    may append to it. Raises OSError if the file cannot be read, ValueError with the number of a line that is not a
    result.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, text in enumerate(file, 1):
            line = text.strip().rstrip("\0")  # a machine that lost power may leave zeros
            if not line:
                continue
            try:
                result = from_json(line)
            except json.JSONDecodeError as error:
                if not _is_cut_off(line, error):
                    raise ValueError(f"{path}, line {number}: not JSON: {line[:80]!r}") from error
                warnings.warn(f"{path}, line {number}: half-written, skipped", stacklevel=2)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            else:
                yield result


def _is_cut_off(line: str, error: json.JSONDecodeError) -> bool:
    """Whether a line begins as a result, and its JSON has its first error at its end."""
    begins = line.startswith(_START) or _START.startswith(line)
    return begins and (error.msg.startswith("Unterminated") or error.pos >= len(line) - len("\\uXXXX"))


def _may_hold_results(path: Path) -> bool:
    """Whether a regular file is empty, or starts like a result."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        begin = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
    return not begin or begin.startswith(b"{")


def _unfinished(path: Path) -> bool:
    """Whether a regular file has a last line without a newline."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"
