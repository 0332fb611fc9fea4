"""Keeps a cache under its limit, and empties it, while other processes use it.

- Whoever finds an entry first marks it as used, then verifies it. What was used in the last hour is never pruned: a
  process may be about to load it. What a run needs until its end, it holds by a lock.
- An entry is renamed before it is deleted, so nobody finds half of it, and whoever has mapped its library keeps that.
  Once nobody can find it any longer its mark and its lock are looked at again: if it was used since, it is put back.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inlinebench.compile.cache import contents
from inlinebench.compile.cache.contents import GONE, Item

IN_USE_S = 3600
"""For so long what was used may be about to be loaded, and what was touched be a build under way."""
LEFT_S = 24 * 3600
"""After so long without a change, work under way is no longer under way."""
TRIES = 20


@dataclass(frozen=True)
class Removed:
    """How many of each were removed, and the bytes of them all."""

    libraries: int = 0
    notes: int = 0
    peaks: int = 0
    leftovers: int = 0
    size: int = 0


def prune(place: Path, limit: float, keep: Path | None = None) -> Removed:
    """Removes the libraries used least recently until the rest is within `limit` bytes, and what is left over.

    `keep` is an entry that stays. Peaks stay, too: they are small, and measuring them takes long.
    """
    now = time.time()
    chosen = least_recently_used(contents.libraries(place), limit, now, keep)
    libraries = [item for item in chosen if _take_unused(item, now)]
    # What lies among strangers' things may be theirs, whatever its name.
    left = [] if contents.strangers(place) else _delete_all(contents.leftovers(place), before=now - LEFT_S)
    stale = (note for note in contents.notes(place) if not _all_there(note.path))
    notes = _delete_all(stale, before=now)
    size = sum(item.size for item in (*libraries, *notes, *left))
    return Removed(len(libraries), len(notes), 0, len(left), size)


def clear(place: Path) -> Removed:
    """Removes all that is the cache's own but for what runs hold, and builds of the last hour that may be under way."""
    now = time.time()
    libraries = [item for item in contents.libraries(place) if take_away(item.path, lambda moved: not _is_held(moved))]
    notes, peaks = _delete_all(contents.notes(place)), _delete_all(contents.peaks(place))
    left = _delete_all(contents.leftovers(place), before=now - IN_USE_S)
    for shelf in contents.shelves(place):
        with suppress(OSError):  # not empty; and whoever stores an entry makes the shelf that is missing
            shelf.rmdir()
    size = sum(item.size for item in (*libraries, *notes, *peaks, *left))
    return Removed(len(libraries), len(notes), len(peaks), len(left), size)


def least_recently_used(items: Iterable[Item], limit: float, now: float, keep: Path | None = None) -> list[Item]:
    """Which ones go, and in what order, for the rest to be within `limit` bytes, as far as those in use allow it."""
    by_use = sorted(items, key=lambda item: item.used)
    total = sum(item.size for item in by_use)
    chosen = []
    for item in by_use:
        if total <= limit:
            break
        if item.path != keep and not _in_use(item.used, now):
            chosen.append(item)
            total -= item.size
    return chosen


def mark_used(path: Path) -> None:
    """Keeps a library's entry, or its file, from being pruned for an hour."""
    with suppress(OSError):  # it isn't there, or is another user's: then it isn't ours to prune either
        os.utime(path, follow_symlinks=False)


def hold(path: Path) -> int:
    """Keeps it from being pruned for as long as the file descriptor that this gives is open. Raises OSError."""
    mark_used(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    for _ in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except BlockingIOError:  # somebody who prunes looks whether it is held, which takes no time
            time.sleep(0.01)
        except OSError:  # a file system without locks: the mark has to do
            break
    return descriptor


def take_away(path: Path, goes: Callable[[Path], bool] | None = None) -> bool:
    """Removes a file or folder for everybody at once; whether it did.

    `goes` looks at it again when nobody can find it any longer. If that says no, it is put back.
    """
    away = path.with_name(f"{GONE}{secrets.token_hex(4)}")
    try:
        path.rename(away)
    except OSError:  # somebody was faster, or has rights that we lack
        return False
    if goes is not None and not goes(away):
        with suppress(OSError):  # a new one may have taken the place
            away.rename(path)
            return False
    _delete(away)
    return True


def _take_unused(item: Item, now: float) -> bool:
    def unused(path: Path) -> bool:
        try:
            return path.lstat().st_mtime <= item.used and not _in_use(item.used, now) and not _is_held(path)
        except OSError:
            return False

    return unused(item.path) and take_away(item.path, unused)


def _in_use(used: float, now: float) -> bool:
    """Clocks of machines that share a disk differ: a use may lie in the future, but not by much."""
    return abs(now - used) < IN_USE_S


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it went away
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no locks here
        return False
    finally:
        os.close(descriptor)
    return False


def _all_there(note: Path) -> bool:
    libraries = contents.noted(note)
    return libraries is not None and all(library.exists() for library in libraries)


def _delete_all(items: Iterable[Item], before: float = float("inf")) -> list[Item]:
    """Deletes those last touched by then, and gives them."""
    old = [item for item in items if item.used <= before]
    for item in old:
        _delete(item.path)
    return [item for item in old if not os.path.lexists(item.path)]


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
