"""The content-addressed cache of built libraries: one folder a key, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError

FACTS = "facts.json"


class Cache:
    """Libraries by key below a folder. Many processes may use it at once.

    Raises UsageError if the folder can't be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = folder.expanduser().absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = f"{folder}: the cache can't be written ({error.strerror}); --cache names another folder"
            raise UsageError(why) from error

    def find(self, key: str) -> Path | None:
        """The library of a key, if it is there and undamaged; a damaged entry is removed."""
        entry = self._entry(key)
        if not entry.exists():
            return None
        try:
            facts = json.loads((entry / FACTS).read_text())
            library = entry / str(facts["library"])
            intact = _digest(library) == facts["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            intact = False
        if not intact:
            shutil.rmtree(entry, ignore_errors=True)
            return None
        return library

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """An empty folder to build in, on the cache's file system; removed at the end."""
        folder = Path(tempfile.mkdtemp(prefix="building-", dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def store(self, key: str, library: Path) -> Path:
        """Moves a built library into its entry; if another process was faster, its library is used.

        Raises OSError if the disk refuses.
        """
        entry = self._entry(key)
        entry.parent.mkdir(exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="entry-", dir=self.folder))
        os.replace(library, fresh / library.name)
        facts = {"library": library.name, "sha256": _digest(fresh / library.name)}
        (fresh / FACTS).write_text(json.dumps(facts))
        fresh.chmod(0o755)
        try:
            fresh.rename(entry)
        except OSError:  # the entry exists: whoever made it built the same content
            shutil.rmtree(fresh, ignore_errors=True)
        found = self.find(key)
        if found is None:
            raise OSError(f"{entry}: the entry was damaged as it was written")
        return found

    def remember(self, name: str, libraries: Sequence[Path]) -> None:
        """Notes under a name (a hash) which libraries something was built into."""
        folder = self.folder / "built"
        folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump([str(library) for library in libraries], file)
        os.replace(file.name, folder / name)

    def recalls(self, name: str) -> bool:
        """Whether all that was noted under a name is still there. Only a hint: whoever uses a library verifies it."""
        try:
            libraries = json.loads((self.folder / "built" / name).read_text())
        except (OSError, ValueError):
            return False
        return all(Path(library).exists() for library in libraries)

    def _entry(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
