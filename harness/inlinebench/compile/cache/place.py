"""Whom the files of a cache must belong to.

What lies in a cache is machine code that gets loaded, so whoever can write there runs code as whoever uses it. A digest
says that a library is whole, not who made it: whoever can write the one can write the other. Hence

- our entries lie where only we (and root) can put anything. That is the folder that was named, if it is ours and
  nobody else may write it; or, where many may write but the sticky bit keeps each from replacing what is others', as in
  /tmp, a folder of our own in it. Users who name one folder so share its disk, and no code.
- an entry is used only if it and its files belong to us or root and nobody else may write them. Others were put there
  while the folder was open to somebody, and are built anew.

The folders above the cache are not looked at: whoever names a folder answers for the way to it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from inlinebench.records.errors import UsageError

PRIVATE = 0o700
"""The mode of folders that are made, whatever the umask is."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_INSTEAD = "name another folder with --cache"


def place_in(folder: Path) -> Path:
    """Where our entries lie, there already or not, when this folder is named as the cache.

    Raises UsageError if somebody else could replace what lies there, OSError if the folder isn't there.
    """
    facts = folder.stat()
    if facts.st_uid not in _trusted():
        raise UsageError(f"{folder}: this cache belongs to user {facts.st_uid}, who could replace the code in it; "
                         f"chown -R it if it is a copy of your own, or {_INSTEAD}")
    if not facts.st_mode & _OTHERS_WRITE:
        return folder
    if not facts.st_mode & stat.S_ISVTX:
        raise UsageError(f"{folder}: others could replace the code in this cache; chmod go-w it, or +t for a cache "
                         f"that users share, or {_INSTEAD}")
    place = folder / f"inlinebench-{os.geteuid()}"
    if os.path.lexists(place) and not is_own(place):
        raise UsageError(f"{place}: somebody else has made or may write our part of this cache; remove it, or "
                         f"{_INSTEAD}")
    return place


def make_place(folder: Path) -> Path:
    """The same, made if it isn't there and seen to be writable. Raises UsageError, or OSError if that can't be."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    place_in(folder).mkdir(mode=PRIVATE, exist_ok=True)
    return place_in(folder)  # looked at again: somebody may have been faster


def is_own(path: Path) -> bool:
    """Whether a file or folder is there, belongs to us or root, and can be written by nobody else. No link is."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    return facts.st_uid in _trusted() and not facts.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(facts.st_mode)


def is_closed(folder: Path) -> bool:
    """Whether a folder is our own and nobody else can even enter it, so that no mode of a file in it matters."""
    return is_own(folder) and stat.S_IMODE(folder.lstat().st_mode) & 0o077 == 0


def _trusted() -> tuple[int, int]:
    return os.geteuid(), 0
