"""Checks the ownership of a cache's files.

The cache contains machine code that is loaded, so a user who can write to it can run code as the user who loads it. A
digest shows that a library is intact, not who wrote it, because the same writer can replace both. Therefore:

- Entries are stored where only the current user and root can write. That is the named folder, if the user owns it and
  nobody else may write to it. If others may write to it but its sticky bit keeps them from replacing files, as in /tmp,
  it is a subfolder of this user. So users who name the same folder share disk space, but no code.
- An entry is used only if it and its files belong to this user or root and nobody else may write to them. Other entries
  may have been created while the folder was open to others, and are built again.

Parent folders of the cache are not checked: whoever names a folder is responsible for its path.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from inlinebench.errors import UsageError

PRIVATE = 0o700
"""The mode of created folders, independent of the umask."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_INSTEAD = "name another folder with --cache"


def cache_folder(folder: Path) -> Path:
    """Returns the folder for this user's entries, which may not exist yet, if `folder` is named as the cache.

    Raises UsageError if another user could replace files in it, and OSError if `folder` does not exist.
    """
    facts = folder.stat()
    if facts.st_uid not in _trusted():
        raise UsageError(f"{folder}: this cache belongs to user {facts.st_uid}, who could replace the code in it; "
                         f"run chown -R if it is a copy of your own, or {_INSTEAD}")
    if not facts.st_mode & _OTHERS_WRITE:
        return folder
    if not facts.st_mode & stat.S_ISVTX:
        raise UsageError(f"{folder}: other users could replace the code in this cache; run chmod go-w, or chmod +t "
                         f"for a cache that users share, or {_INSTEAD}")
    root = folder / f"inlinebench-{os.geteuid()}"
    if os.path.lexists(root) and not is_own(root):
        raise UsageError(f"{root}: another user has created or may write to this user's part of the cache; remove "
                         f"it, or {_INSTEAD}")
    return root


def make_cache_folder(folder: Path) -> Path:
    """Like `cache_folder`, but creates a missing folder. Raises UsageError, or OSError if it cannot be created.
    """
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    cache_folder(folder).mkdir(mode=PRIVATE, exist_ok=True)
    return cache_folder(folder)  # checked again: another process may have created it first


def is_own(path: Path) -> bool:
    """Whether a file or folder exists, is not a link, belongs to this user or root, and is writable by nobody else."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    return facts.st_uid in _trusted() and not facts.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(facts.st_mode)


def is_closed(folder: Path) -> bool:
    """Whether a folder is own and nobody else can enter it, so that the modes of its files do not matter."""
    return is_own(folder) and stat.S_IMODE(folder.lstat().st_mode) & 0o077 == 0


def _trusted() -> tuple[int, int]:
    return os.geteuid(), 0
