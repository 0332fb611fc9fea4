"""Stores and finds entries: one folder per key, which appears atomically and is verified at each use."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from inlinebench.compile.cache.contents import BUILDING, ENTRY, FACTS, NOTES, item_of, noted
from inlinebench.compile.cache.folder import PRIVATE, is_closed, is_own, make_cache_folder
from inlinebench.compile.cache.prune import TRIES, hold, mark_used, prune, take_away
from inlinebench.errors import UsageError
from inlinebench.sandbox.removal import remove

_CHUNK = 1 << 20


class Cache:
    """Stores libraries by key in a folder, up to `limit` bytes. Several processes may use it; entries are per user.

    Raises UsageError if the folder cannot be created or written, or if another user could replace its files.
    """

    def __init__(self, folder: Path, limit: float = float("inf")) -> None:
        folder = folder.expanduser().absolute()
        try:
            self.folder = make_cache_folder(folder)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            why = f"{folder}: cannot write the cache ({error.strerror}); name another folder with --cache"
            raise UsageError(why) from error
        self._limit = limit
        self._held: dict[Path, int] = {}
        self._lock = Lock()

    def find(self, key: str) -> Path | None:
        """Returns the library of a key if its entry is intact and trusted. Removes an entry that is not."""
        entry = self._entry(key)
        if not is_own(entry.parent):
            return None
        mark_used(entry)  # before the check, so that a pruning process sees the mark or this process sees the removal
        library = _verified(entry)
        if library is None and os.path.lexists(entry):
            take_away(entry, lambda moved: _verified(moved) is None)
        return library

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """Creates an empty folder to build in on the cache's file system, and removes it at the end."""
        folder = Path(tempfile.mkdtemp(prefix=BUILDING, dir=self.folder))
        try:
            yield folder
        finally:
            remove(folder)

    def store(self, key: str, library: Path) -> Path:
        """Copies a built library into its entry and returns its path. If another process stored it first, uses that
        one.

        Then prunes the cache to its limit. Raises OSError if the disk fails.
        """
        for _ in range(TRIES):
            problem = self._put(key, library)
            if (found := self.find(key)) is not None:
                break
        else:  # other processes damaged or removed it each time, or the disk fails
            raise OSError(f"{self._entry(key)}: cannot write the entry or read it back") from problem
        with suppress(OSError):  # the next call tries again
            prune(self.folder, self._limit, keep=found.parent)
        return found

    def room(self, name: str) -> Path:
        """Returns a private folder for libraries that are named and found by the code that makes them."""
        room = self.folder / name
        if os.path.lexists(room) and not _close(room):
            take_away(room, lambda moved: not _close(moved))
        room.mkdir(mode=PRIVATE, exist_ok=True)
        return room

    def hold(self, library: Path) -> bool:
        """Keeps a library from being pruned until `close`, and returns whether the library exists."""
        item = item_of(library)
        with self._lock, suppress(OSError):  # it does not exist, or too many files are open: the mark has to suffice
            held = hold(item)
            if item in self._held:  # possibly an earlier item of the same name
                os.close(self._held[item])
            self._held[item] = held
        return library.exists()

    def close(self) -> None:
        """Releases all held libraries."""
        with self._lock:
            while self._held:
                os.close(self._held.popitem()[1])

    def remember(self, name: str, libraries: Sequence[Path]) -> None:
        """Records under a name (a hash) which libraries a solution was built into. Only a hint, so a failure is none.
        """
        folder = self.folder / NOTES
        with suppress(OSError):
            folder.mkdir(mode=PRIVATE, exist_ok=True)
            descriptor, fresh = tempfile.mkstemp(dir=folder)
            try:
                with open(descriptor, "w") as file:
                    json.dump([str(library) for library in libraries], file)
                os.replace(fresh, folder / name)
            except OSError:
                os.unlink(fresh)

    def recalls(self, name: str) -> bool:
        """Whether all libraries recorded under a name still exist. Only a hint: uses of a library verify it."""
        libraries = noted(self.folder / NOTES / name)
        return libraries is not None and all(library.exists() for library in libraries)

    def _entry(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _put(self, key: str, library: Path) -> OSError | None:
        """Creates an entry unless it exists. Returns the error if that failed."""
        entry = self._entry(key)
        fresh = Path(tempfile.mkdtemp(prefix=ENTRY, dir=self.folder))
        try:
            _fill(fresh, library)
            if os.path.lexists(entry.parent) and not is_own(entry.parent):
                take_away(entry.parent, lambda moved: not is_own(moved))
            try:
                entry.parent.mkdir(mode=PRIVATE, exist_ok=True)
                fresh.rename(entry)
            except OSError as error:  # the entry exists with the same content, or its folder was just removed
                return error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return None


def _close(room: Path) -> bool:
    """Closes a folder to other users unless they may have written to it already. Returns whether it is closed."""
    if is_own(room) and not is_closed(room) and all(map(is_own, room.iterdir())):
        room.chmod(PRIVATE)
    return is_closed(room)


def _fill(entry: Path, library: Path) -> None:
    """Copies the library, because the build may still have it open, and sets its mode, which depended on the umask."""
    copy, facts = entry / library.name, entry / FACTS
    with open(os.open(library, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    facts.write_text(json.dumps({"library": copy.name, "sha256": _digest(copy)}))
    for file in (copy, facts):
        file.chmod(0o644)


def _verified(entry: Path) -> Path | None:
    """Returns the library of an entry if it is intact and trusted."""
    try:
        facts = json.loads((entry / FACTS).read_text())
        library = entry / Path(str(facts["library"])).name
        ours = all(map(is_own, (entry, entry / FACTS, library)))
        return library if ours and _digest(library) == facts["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
