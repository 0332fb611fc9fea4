"""Makes the precompiled headers of `inlinebench.compile.precompiled` when they pay, and finds those that are there."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock

from inlinebench.compile.cache import CPU_LIBRARIES, Cache
from inlinebench.compile.cache.contents import entries
from inlinebench.compile.cpu_recipe import precompiled_recipe
from inlinebench.compile.precompiled import DIGITS, FOLDER, PRECOMPILED_DIR, WORTH_IT
from inlinebench.compile.recipe import Recipe, precompiled_kernel_recipe
from inlinebench.sandbox.watchdog import Breach

LOCK = "prefix.lock"
Ninja = Callable[[Path], tuple[int | None, str, Breach | None]]
"""Runs the file in a folder; gives the exit status, what was printed, and a limit that was broken."""


class PrecompiledHeaders:
    """Those of one cache, for GPUs' architectures or, without any, for the CPU. Thread-safe."""

    def __init__(self, cache: Cache, ninja: Ninja, architectures: Sequence[str] = ()) -> None:
        self._cache, self._ninja, self._architectures = cache, ninja, architectures
        self._asked = 0
        self._failed = False
        self._lock, self._making = Lock(), Lock()

    def folder(self) -> Path:
        """Where they are; that of the plain headers if there are none. Raises MissingTool."""
        _, found = self._planned
        return found if self._cache.hold(found) else PRECOMPILED_DIR

    def ask(self) -> bool:
        """To be called before each build; whether they are there.

        Made now if enough was built with this cache or asked for, which takes as long as some builds; not if somebody
        else is just making them. Raises MissingTool.
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
        """Makes them now, if nobody has, however little was built; whether they are there. Raises MissingTool."""
        planned, found = self._planned
        with self._making:
            return self._cache.hold(found) or (self._make(planned.files, found) and self._cache.hold(found))

    @cached_property
    def _planned(self) -> tuple[Recipe, Path]:
        """How they are made, and where they are when somebody has. Raises MissingTool."""
        planned = precompiled_kernel_recipe(self._architectures) if self._architectures else precompiled_recipe()
        return planned, self._cache.room(CPU_LIBRARIES) / f"{FOLDER}{planned.key[:DIGITS]}"

    def _make(self, files: dict[str, str], target: Path) -> bool:
        """Whether they can be made here. Of several processes one does it, and the others go on without."""
        try:
            return self._made(files, target)
        except OSError:  # the disk is full, say
            return False

    def _made(self, files: dict[str, str], target: Path) -> bool:
        with (target.parent / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            if target.exists():  # somebody was faster
                return True
            with tempfile.TemporaryDirectory(dir=target.parent, ignore_cleanup_errors=True) as folder:
                made = Path(folder) / target.name
                made.mkdir()
                for name, text in files.items():
                    (made / name).write_text(text, encoding="utf-8")
                status, _, breach = self._ninja(made)
                if status != 0 or breach is not None:
                    return False  # builds go without; what is wrong with the compiler they tell better
                _write_through(made)
                with suppress(OSError):  # where there are no locks somebody may have been faster here as well
                    os.replace(made, target)
        return True


def _write_through(folder: Path) -> None:
    """Has what lies in a folder reach the disk: one that a power failure cut off would fail every build."""
    for path in folder.rglob("*.gch"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
