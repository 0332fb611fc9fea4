"""Makes a private copy of a solution's folder, which the solution may write to.

The copy of `/home/me/softmax/fast.py` is `SCRATCH/files/home/me/softmax/fast.py`. Without the prefix, this is the
author's path.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from inlinebench.candidate import FILES
from inlinebench.sandbox.given import PACKAGES, entries

MOST_COPIES = 256
"""The most files and folders to copy. Further ones become links to the author's files: readable, but not writable."""
MOST_BYTES = 64 << 20
"""The most bytes of all copies together. A file that exceeds the rest becomes a link as well."""
MOST_ENTRIES = 4096
"""The most copies and links. Each takes about 100 µs, in every evaluation."""


class Files:
    """The private copies of one process, in its scratch folder."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self._root = scratch, scratch / FILES
        self._named: list[Path] = []

    def copy(self, solution: Path, readable: Iterable[Path]) -> Path:
        """Copies what a solution is given (see `inlinebench.sandbox.given`), and returns the path of its own copy.

        Files that cannot be copied become links to the author's files, so that accessing them fails in the same way.
        """
        named = dict.fromkeys(readable)
        self._named += named
        todo, left = list(named), MOST_BYTES
        for number, path in enumerate(todo):  # the list grows by the contents of folders
            own = self._private(path)
            if number == MOST_ENTRIES:
                break
            if os.path.isdir(path) and (path in named or (number < MOST_COPIES and not path.is_symlink())):
                own.mkdir(parents=True, exist_ok=True)
                todo += _entries(path)
            elif not os.path.lexists(own):
                own.parent.mkdir(parents=True, exist_ok=True)
                left -= _copy(path, own, left if number < MOST_COPIES else 0)
        return self._private(solution)

    def write(self, copy: Path, text: str) -> Path:
        """Replaces a private copy by a Python file with a text, and returns its path. The author's file stays as it is,
        also if the copy is a link to it."""
        copy.unlink()
        path = copy.with_suffix(".py")
        path.write_text(text, encoding="utf-8")
        return path

    def by_author(self, text: str) -> str:
        """Returns a text with the paths of copies replaced by the author's paths."""
        return text.replace(f"{self._root}/", "/")

    def is_copy(self, path: Path) -> bool:
        """Whether a path is inside the folder of copies."""
        return path.is_relative_to(self._root)

    def belongs(self, path: Path) -> bool:
        """Whether a file belongs to the solution: it is in the scratch folder or in a folder that was copied, but not
        part of a package that is installed there."""
        if not PACKAGES.isdisjoint(path.parts):
            return False
        folders = (self.scratch, *self._named)
        return any(each.is_relative_to(folder) for each in (path, path.resolve()) for folder in folders)

    def relative(self, path: Path) -> str | None:
        """Returns a path relative to the folder of copies, or else to the scratch folder. None if it is in neither."""
        for folder in (self._root, self.scratch):
            if path.is_relative_to(folder):
                return str(path.relative_to(folder))
        return None

    def _private(self, path: Path) -> Path:
        return self._root / path.relative_to("/")


def _entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry) for entry in entries(folder)[:MOST_ENTRIES]]
    except OSError:
        return []  # an unreadable folder appears empty


def _copy(path: Path, own: Path, most_bytes: int) -> int:
    """Copies a file of at most that many bytes, or links to it otherwise. Returns the number of bytes copied."""
    try:
        facts = path.stat()
        if stat.S_ISREG(facts.st_mode) and facts.st_size <= most_bytes:
            shutil.copy2(path, own)
            own.chmod(stat.S_IMODE(facts.st_mode) | stat.S_IWUSR)
            return facts.st_size
    except OSError:
        own.unlink(missing_ok=True)
    own.symlink_to(path)
    return 0
