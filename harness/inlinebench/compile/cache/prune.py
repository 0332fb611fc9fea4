"""Prunes or clears a cache while other processes use it.

- A process that looks for an entry first marks it as used, then verifies it. Entries used in the last hour are never
  pruned, because a process may be about to load them. A run locks the items that it needs until its end.
- An entry is renamed before it is deleted, so no process finds a partial one; a process that has mapped its library
  keeps the mapping. After renaming, the mark and the lock are checked again: if it was used since, it is put back.
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
"""For this time after its last use an item may be about to be loaded, or a build may be in progress."""
LEFT_S = 24 * 3600
"""Work without a change for this time is no longer in progress."""
TRIES = 20


@dataclass(frozen=True)
class Removed:
    """The numbers of removed items, and their total size in bytes."""

    libraries: int = 0
    notes: int = 0
    peaks: int = 0
    leftovers: int = 0
    size: int = 0


def prune(root: Path, limit: float, keep: Path | None = None) -> Removed:
    """Removes the least recently used libraries until the rest is within `limit` bytes. Also removes leftovers.

    `keep` is an entry that stays. Peaks stay too, because they are small and measuring them is slow.
    """
    now = time.time()
    chosen = least_recently_used(contents.libraries(root), limit, now, keep)
    libraries = [item for item in chosen if _take_unused(item, now)]
    # If the folder has files that are not the cache's, leftovers may not be the cache's either, whatever their names.
    left = [] if contents.unknown_names(root) else _delete_all(contents.leftovers(root), before=now - LEFT_S)
    stale = (note for note in contents.notes(root) if not _all_there(note.path))
    notes = _delete_all(stale, before=now)
    size = sum(item.size for item in (*libraries, *notes, *left))
    return Removed(len(libraries), len(notes), 0, len(left), size)


def clear(root: Path) -> Removed:
    """Removes all of the cache's own contents except items that runs hold, and builds of the last hour."""
    now = time.time()
    libraries = [item for item in contents.libraries(root) if take_away(item.path, lambda moved: not _is_held(moved))]
    notes, peaks = _delete_all([*contents.notes(root), *contents.failures(root)]), _delete_all(contents.peaks(root))
    left = _delete_all(contents.leftovers(root), before=now - IN_USE_S)
    for folder in contents.entry_folders(root):
        with suppress(OSError):  # not empty; storing an entry creates a missing folder
            folder.rmdir()
    size = sum(item.size for item in (*libraries, *notes, *peaks, *left))
    return Removed(len(libraries), len(notes), len(peaks), len(left), size)


def least_recently_used(items: Iterable[Item], limit: float, now: float, keep: Path | None = None) -> list[Item]:
    """Returns the items to remove, in order, so that the rest is within `limit` bytes. Skips items that are in use."""
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
    """Marks an entry or library as used, which keeps it from being pruned for an hour."""
    with suppress(OSError):  # it does not exist, or belongs to another user and so is not pruned by this one
        os.utime(path, follow_symlinks=False)


def hold(path: Path) -> int:
    """Locks an item so that it is not pruned while the returned file descriptor is open. Raises OSError."""
    mark_used(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    for _ in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except BlockingIOError:  # a pruning process holds the lock for a moment to check it
            time.sleep(0.01)
        except OSError:  # the file system has no locks: the mark alone has to suffice
            break
    return descriptor


def take_away(path: Path, goes: Callable[[Path], bool] | None = None) -> bool:
    """Removes a file or folder atomically for all processes, and returns whether it did.

    `goes` decides about it after it was renamed and can no longer be found. If it returns False, it is put back.
    """
    away = path.with_name(f"{GONE}{secrets.token_hex(4)}")
    try:
        path.rename(away)
    except OSError:  # another process was faster, or permissions are missing
        return False
    if goes is not None and not goes(away):
        with suppress(OSError):  # a new item may exist at this path
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
    """Whether an item is in use. Clocks of machines that share a disk differ, so `used` may be slightly in the future.
    """
    return abs(now - used) < IN_USE_S


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # removed in the meantime
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no locks
        return False
    finally:
        os.close(descriptor)
    return False


def _all_there(note: Path) -> bool:
    libraries = contents.noted(note)
    return libraries is not None and all(library.exists() for library in libraries)


def _delete_all(items: Iterable[Item], before: float = float("inf")) -> list[Item]:
    """Deletes the items last used at or before `before`, and returns the deleted ones."""
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
