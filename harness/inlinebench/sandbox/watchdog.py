"""Enforces limits on a process tree from outside, by polling it several times a second.

The kernel's own means do not suffice: resource limits count per process or per user, and do not bind root's processes;
control groups belong to the administrator of the machine. Polling works everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from inlinebench.wire.processes import descendants, kill_tree

EVERY_S = 0.05
FILES_EVERY = 5
"""Files are counted in each fifth poll: counting them is slower, and a disk fills more slowly than a process table."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SECTOR_BYTES = 512


def available_bytes() -> int:
    """Returns the available host memory in bytes. Raises OSError if /proc does not report it."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemAvailable")


@dataclass(frozen=True)
class Limits:
    """What a process and its descendants may use at the same time."""

    memory_bytes: int
    """Host memory in bytes."""
    processes: int = 256
    """Number of processes."""
    scratch_bytes: int = 4 << 30
    """Bytes in the files of its folder, and in deleted files that are still open."""
    files: int = 100_000
    """Number of entries of its folder."""


@dataclass(frozen=True)
class Breach:
    """The broken limit: its kind (`memory`, `processes` or `files`), and a sentence about it."""

    kind: str
    text: str


class Watchdog:
    """Kills a supervisor and all below it as soon as these break a limit. `breach` then says which limit.

    The supervisor itself does not count: its memory is shared with the process that it was forked from. `forks_before`
    is as for `inlinebench.wire.processes.descendants`.
    """

    def __init__(self, pid: int, scratch: Path, limits: Limits, forks_before: int | None = None) -> None:
        self.breach: Breach | None = None
        self.forks_before = forks_before
        self._pid, self._scratch, self._limits = pid, scratch, limits
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True, name="watchdog")
        self._thread.start()

    def close(self) -> None:
        """Stops watching. Does not affect the process."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        polls = 0
        while not self._over.wait(EVERY_S):
            self.breach = self._poll(with_files=polls % FILES_EVERY == 0)
            polls += 1
            if self.breach is not None:
                kill_tree(self._pid)
                return

    def _poll(self, with_files: bool) -> Breach | None:
        limits = self._limits
        tree = self._tree()
        if len(tree) > limits.processes:
            return Breach("processes", f"it ran more than {limits.processes} processes at once")
        if sum(map(_own_bytes, tree)) + max(map(_shared_bytes, tree), default=0) > limits.memory_bytes:
            return self._memory_breach()
        return self._check_files() if with_files else None

    def _tree(self) -> list[int]:
        """Returns all processes, also those that have ended and were not waited for: they use up the machine's PIDs."""
        return descendants(self._pid, unreaped=True, forks_before=self.forks_before)

    def _memory_breach(self) -> Breach:
        return Breach("memory", f"it used more than {self._limits.memory_bytes / 2**30:.3g} GiB of host memory")

    def _check_files(self) -> Breach | None:
        in_memory, total = _hidden_bytes(self._tree())
        if in_memory > self._limits.memory_bytes:
            return self._memory_breach()
        count = 0
        try:
            for count, entry in enumerate(_files(self._scratch), 1):
                total += _size(entry)
                if count > self._limits.files or total > self._limits.scratch_bytes:
                    break
        except OSError as error:
            return Breach("files", f"it made a folder whose files cannot be counted: {error.strerror}")
        if count <= self._limits.files and total <= self._limits.scratch_bytes:
            return None
        return Breach("files", f"it wrote more than {self._limits.scratch_bytes >> 30} GiB or "
                      f"{self._limits.files} files")


def _own_bytes(pid: int) -> int:
    resident, shared = _resident(pid)
    return resident - shared


def _shared_bytes(pid: int) -> int:
    return _resident(pid)[1]


def _resident(pid: int) -> tuple[int, int]:
    """Returns the resident bytes of a process, and those backed by files and shared memory; zeros if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0, 0
    return int(fields[1]) * PAGE_BYTES, int(fields[2]) * PAGE_BYTES


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Iterates over all entries below a folder. Does not follow links.

    Raises OSError for a folder that is unreadable or whose path is too long.
    """
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted in the meantime


def _hidden_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Returns the bytes of open files that are in no folder: of memory files, and of deleted files."""
    in_memory: dict[tuple[int, int], int] = {}
    deleted: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as links:
                for link in links:
                    target = os.readlink(link.path)
                    if target.endswith(" (deleted)"):
                        found = os.stat(link.path)
                        sizes = in_memory if target.startswith("/memfd:") else deleted
                        sizes[found.st_dev, found.st_ino] = found.st_blocks * SECTOR_BYTES
        except OSError:
            continue  # closed or ended in the meantime
    return sum(in_memory.values()), sum(deleted.values())


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * SECTOR_BYTES
    except OSError:
        return 0  # deleted in the meantime
