"""Makes the precompiled headers of `inlinebench.compile.precompiled` when it is worthwhile, and finds existing ones."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock

from inlinebench.compile.cache import CPU_LIBRARIES, Cache
from inlinebench.compile.cache.contents import entries
from inlinebench.compile.precompiled import DIGITS, FOLDER, PRECOMPILED_DIR, WORTH_IT
from inlinebench.compile.recipe import Recipe
from inlinebench.compile.target import Target
from inlinebench.sandbox.watchdog import Breach

LOCK = "prefix.lock"
Ninja = Callable[[Path], tuple[int | None, str, Breach | None]]
"""Runs ninja in a folder. Returns the exit status, the output, and the limit that was broken, if any."""


class PrecompiledHeaders:
    """The precompiled headers in a cache, for one target. Thread-safe."""

    def __init__(self, cache: Cache, ninja: Ninja, target: Target) -> None:
        self._cache, self._ninja, self._target = cache, ninja, target
        self._asked = 0
        self._failed = False
        self._lock, self._making = Lock(), Lock()

    def folder(self) -> Path:
        """Returns the folder of the headers, or of the plain headers if none are precompiled. Raises MissingTool."""
        _, found = self._planned
        return found if self._cache.hold(found) else PRECOMPILED_DIR

    def ask(self) -> bool:
        """Counts a build and returns whether the precompiled headers exist. Call it before each build.

        Makes the headers if enough builds were made or asked for, which takes as long as some builds. Does not wait if
        another thread or process is making them. Raises MissingTool.
        """
        planned, found = self._planned
        if self._cache.hold(found):
            return True
        with self._lock:
            self._asked += 1
            pays = not self._failed and self._asked + len(entries(self._cache.folder)) >= WORTH_IT
        if not pays or not self._making.acquire(blocking=False):
            return False
        try:
            self._failed = not self._make(planned.files, found)
        finally:
            self._making.release()
        return self._cache.hold(found)

    def make(self) -> bool:
        """Makes the headers now unless they exist, and returns whether they exist. Raises MissingTool."""
        planned, found = self._planned
        with self._making:
            return self._cache.hold(found) or (self._make(planned.files, found) and self._cache.hold(found))

    @cached_property
    def _planned(self) -> tuple[Recipe, Path]:
        """Returns the recipe and the folder of the headers. Raises MissingTool."""
        planned = self._target.precompiled_recipe()
        return planned, self._cache.room(CPU_LIBRARIES) / f"{FOLDER}{planned.key[:DIGITS]}"

    def _make(self, files: dict[str, str], target: Path) -> bool:
        """Makes the headers and returns False if that failed. One of several processes does it, the others skip it."""
        try:
            return self._made(files, target)
        except OSError:  # for example a full disk
            return False

    def _made(self, files: dict[str, str], target: Path) -> bool:
        with (target.parent / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            if target.exists():  # another process was faster
                return True
            with tempfile.TemporaryDirectory(dir=target.parent, ignore_cleanup_errors=True) as folder:
                made = Path(folder) / target.name
                made.mkdir()
                for name, text in files.items():
                    (made / name).write_text(text, encoding="utf-8")
                status, _, breach = self._ninja(made)
                if status != 0 or breach is not None:
                    return False  # builds do without, and report what is wrong with the compiler
                _write_through(made)
                with suppress(OSError):  # without file locks another process may have been faster here as well
                    os.replace(made, target)
        return True


def _write_through(folder: Path) -> None:
    """Flushes files in a folder to the disk: a file truncated by a power failure would make every build fail."""
    for path in folder.rglob("*.gch"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
