"""Entries: one folder a key, which appears whole or not at all, and is verified whenever it is used."""

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
from inlinebench.compile.cache.place import PRIVATE, is_closed, is_own, make_place
from inlinebench.compile.cache.prune import TRIES, hold, mark_used, prune, take_away
from inlinebench.records.errors import UsageError

_CHUNK = 1 << 20


class Cache:
    """Libraries by key below a folder, `limit` bytes of them. Many processes may use it at once, each user for itself.

    Raises UsageError if the folder can't be made or written, or if somebody else could replace what lies there.
    """

    def __init__(self, folder: Path, limit: float = float("inf")) -> None:
        folder = folder.expanduser().absolute()
        try:
            self.folder = make_place(folder)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            why = f"{folder}: the cache can't be written ({error.strerror}); --cache names another folder"
            raise UsageError(why) from error
        self._limit = limit
        self._held: dict[Path, int] = {}
        self._lock = Lock()

    def find(self, key: str) -> Path | None:
        """The library of a key, if it is there, undamaged and nobody else's; another entry is removed."""
        entry = self._entry(key)
        if not is_own(entry.parent):
            return None
        mark_used(entry)  # before looking: whoever prunes sees the one or the other
        library = _verified(entry)
        if library is None and os.path.lexists(entry):
            take_away(entry, lambda moved: _verified(moved) is None)
        return library

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """An empty folder to build in, on the cache's file system; removed at the end."""
        folder = Path(tempfile.mkdtemp(prefix=BUILDING, dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def store(self, key: str, library: Path) -> Path:
        """Copies a built library into its entry; if another process was faster, its library is used.

        What was used least recently makes room for it. Raises OSError if the disk refuses.
        """
        for _ in range(TRIES):
            problem = self._put(key, library)
            if (found := self.find(key)) is not None:
                break
        else:  # others damaged or removed it each time, or the disk does
            raise OSError(f"{self._entry(key)}: the entry can't be put there, or not be read again") from problem
        with suppress(OSError):  # the next one that stores tries again
            prune(self.folder, self._limit, keep=found.parent)
        return found

    def room(self, name: str) -> Path:
        """A folder for libraries that their makers name and find there themselves, so that nobody else may enter it."""
        room = self.folder / name
        if os.path.lexists(room) and not _close(room):
            take_away(room, lambda moved: not _close(moved))
        room.mkdir(mode=PRIVATE, exist_ok=True)
        return room

    def hold(self, library: Path) -> bool:
        """Keeps a library from being pruned until `close`; whether it is there."""
        item = item_of(library)
        with self._lock, suppress(OSError):  # it isn't there, or too many files are open: its mark has to do
            held = hold(item)
            if item in self._held:  # which may have been another of the same name
                os.close(self._held[item])
            self._held[item] = held
        return library.exists()

    def close(self) -> None:
        """Holds nothing any longer."""
        with self._lock:
            while self._held:
                os.close(self._held.popitem()[1])

    def remember(self, name: str, libraries: Sequence[Path]) -> None:
        """Notes under a name (a hash) which libraries something was built into."""
        folder = self.folder / NOTES
        folder.mkdir(mode=PRIVATE, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump([str(library) for library in libraries], file)
        os.replace(file.name, folder / name)

    def recalls(self, name: str) -> bool:
        """Whether all that was noted under a name is still there. Only a hint: whoever uses a library verifies it."""
        libraries = noted(self.folder / NOTES / name)
        return libraries is not None and all(library.exists() for library in libraries)

    def _entry(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _put(self, key: str, library: Path) -> OSError | None:
        """Makes an entry unless there is one; why it couldn't."""
        entry = self._entry(key)
        fresh = Path(tempfile.mkdtemp(prefix=ENTRY, dir=self.folder))
        try:
            _fill(fresh, library)
            if os.path.lexists(entry.parent) and not is_own(entry.parent):
                take_away(entry.parent, lambda moved: not is_own(moved))
            try:
                entry.parent.mkdir(mode=PRIVATE, exist_ok=True)
                fresh.rename(entry)
            except OSError as error:  # there is one, whose maker built the same content; or its shelf went that moment
                return error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return None


def _close(room: Path) -> bool:
    """Closes a folder to others if they can't have written there yet; whether it is closed."""
    if is_own(room) and not is_closed(room) and all(map(is_own, room.iterdir())):
        room.chmod(PRIVATE)
    return is_closed(room)


def _fill(entry: Path, library: Path) -> None:
    """Copies: whatever built the library may still hold it open, and its mode was up to the umask."""
    copy, facts = entry / library.name, entry / FACTS
    with open(os.open(library, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    facts.write_text(json.dumps({"library": copy.name, "sha256": _digest(copy)}))
    for file in (copy, facts):
        file.chmod(0o644)


def _verified(entry: Path) -> Path | None:
    """The library of an entry that is whole and nobody else's."""
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
