"""Removes folders that foreign code has written."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path


def remove(folder: Path) -> None:
    """Removes a folder that is no longer in use, where this user has permission. Does nothing if it does not exist.

    `shutil.rmtree` fails for folders that foreign code has made unreadable, or nested deeper than Python recurses or a
    path can be long. Here each folder moves up to the first one before it is emptied.
    """
    names = count()
    with suppress(OSError):
        os.chmod(folder, 0o700)
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _empty(Path(entry.path), folder, names)
                    os.rmdir(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)


def _empty(below: Path, folder: Path, names: count[int]) -> None:
    """Deletes the files of a folder, and moves its folders to the first one under new names."""
    os.chmod(below, 0o700)
    for entry in list(os.scandir(below)):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        os.chmod(entry.path, 0o700)  # a folder that may not be written cannot be moved
        while (moved := folder / f"moved-{next(names)}").exists():
            pass
        os.rename(entry.path, moved)
