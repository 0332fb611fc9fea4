"""A solution's own files: a private copy of its folder, which it may write to.

The copy of `/home/me/softmax/fast.py` is `SCRATCH/files/home/me/softmax/fast.py`, so the author's name of a file is its
name here without what stands before it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from inlinebench.candidate import FILES

MOST_COPIES = 256
"""Files and folders. What lies in a folder beyond that is a link to the author's: it can be read, not written."""
MOST_BYTES = 64 << 20
"""Of all copies together; a file that is too large for what is left is a link as well."""
MOST_ENTRIES = 4096
"""Copies and links. Making one of either takes some 100 µs, and each evaluation makes them all."""


class Files:
    """The private files of one process, in its scratch folder."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self._root = scratch, scratch / FILES

    def copy(self, solution: Path, readable: Iterable[Path]) -> Path:
        """Copies the files and folders that a solution may read because of where it lies; gives its own copy.

        What can't be copied is a link to the author's file, so that using it fails as it would there. So is what lies
        beside the folder, for solutions that share something.
        """
        named = dict.fromkeys(readable)
        todo, left = list(named), MOST_BYTES
        for number, path in enumerate(todo):  # which grows: folders come after all that lies above them
            own = self._private(path)
            if number == MOST_ENTRIES:
                break
            if os.path.isdir(path) and (path in named or (number < MOST_COPIES and not path.is_symlink())):
                own.mkdir(parents=True, exist_ok=True)
                todo += _entries(path)
            elif not os.path.lexists(own):
                own.parent.mkdir(parents=True, exist_ok=True)
                left -= _copy(path, own, left if number < MOST_COPIES else 0)
        for path in [path for folder in named if os.path.isdir(folder) for path in _entries(folder.parent)]:
            if not os.path.lexists(self._private(path)):
                self._private(path).symlink_to(path)
        return self._private(solution)

    def by_author(self, text: str) -> str:
        """A text with the author's names of files in place of those of their copies."""
        return text.replace(f"{self._root}/", "/")

    def is_copy(self, path: Path) -> bool:
        """Whether a path lies where the copies are."""
        return path.is_relative_to(self._root)

    def relative(self, path: Path) -> str | None:
        """The name of a private file or folder, relative to the copies or else to the scratch folder; None for others.
        """
        for folder in (self._root, self.scratch):
            if path.is_relative_to(folder):
                return str(path.relative_to(folder))
        return None

    def _private(self, path: Path) -> Path:
        return self._root / path.relative_to("/")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in islice(folder.iterdir(), MOST_ENTRIES) if path.name != "__pycache__")
    except OSError:
        return []  # not readable, and then nobody finds anything there


def _copy(path: Path, own: Path, most_bytes: int) -> int:
    """Copies a file of no more than so many bytes, else makes a link; gives the bytes that were copied."""
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
