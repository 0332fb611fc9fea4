"""What a solution is given: its own file, the files of its folder, and the folder of headers that solutions share.

Only this module says so. A candidate copies these files, the sandboxes of the candidate and of its compilers let them
be read, the keys of its result and of its libraries contain them, and a worker of Ray's gets them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from inlinebench.sandbox.policy import is_narrow

COMMON = "common"
"""Name of the folder, beside the folders of solutions, with the headers that they share."""
PACKAGES = frozenset({"site-packages", "dist-packages"})
"""Names of the folders of installed packages. A virtual environment may be beside a solution."""
LEFT_OUT = PACKAGES | {"__pycache__", ".git"}
"""Names of files and folders that are not given with their folder. They change without the solution's sources."""
MOST_FILES = 1 << 16
"""The most files that `digest` reads. Each takes about 7 µs, and 25 µs when it is read for the first time."""
MOST_BYTES = 4 << 30
"""The most bytes that `digest` reads: a few seconds, once in each process."""
SETTLED_NS = 2_000_000_000
"""The age of a file's last change from which its digest is kept. File systems do not tell two changes within
milliseconds apart."""


def readable_for(solution: Path, alone: bool = False) -> list[Path]:
    """Returns the paths that a solution is given: its file, its folder, and the folder `common` beside that one, if it
    exists. If the file is a link, they are those of its target.

    A folder is left out if it is the home or temporary folder, or contains one of them. If the solution is `alone`, it
    is given only its file, because the files next to it then do not belong to it.
    """
    path = solution.resolve()
    if alone or not is_narrow(path.parent):
        return [path]
    common = path.parent.parent / COMMON
    shared = [common] if common != path.parent and common.is_dir() and is_narrow(common) else []
    return [path, path.parent, *shared]


def entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """Returns what is given with a folder of its files and folders, sorted. Raises OSError if it cannot be read."""
    with os.scandir(folder) as found:
        return sorted((entry for entry in found if entry.name not in LEFT_OUT), key=lambda entry: entry.name)


def files(given: Iterable[str | Path], without: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields the files that a solution is given: first its own, with an empty name, then those in its folder and below,
    with their paths in it, and those in the common folder, with paths such as `../common/sum.cuh`.

    Args:
        given: the paths that `readable_for` returns.
        without: paths of files and folders in these folders to leave out.

    A link counts as the file or folder that it leads to, also outside the folder. It is yielded itself if it leads
    nowhere, or to a folder that contains it. Nothing limits the walk but the folder, so callers limit it. Raises
    OSError if a folder cannot be read.
    """
    own, *folders = map(str, given)
    yield "", own
    todo: list[tuple[str, str, tuple[str, ...]]] = [
        (folder, "" if folder == folders[0] else f"{os.path.relpath(folder, folders[0])}/", (folder,))
        for folder in folders
    ]
    for folder, above, around in todo:  # the list grows by the folders that are found
        for entry in entries(folder):
            name, path = above + entry.name, entry.path
            if path == own or path in without:
                continue
            is_folder = os.path.isdir(path) if entry.is_symlink() else entry.is_dir()
            if is_folder and (real := os.path.realpath(path)) not in around:
                todo.append((path, f"{name}/", (*around, real)))
            else:
                yield name, path


def digest(given: Iterable[str | Path], without: Collection[str] = ()) -> str:
    """Returns a digest of the files that a solution is given: of their contents, and of their paths in its folder. The
    place of the folder and the name of the solution's own file do not count. For the arguments, see `files`.

    Raises OSError if a file cannot be read, or if there are more than `MOST_FILES` or `MOST_BYTES`.
    """
    found: dict[str, str] = {}
    left = MOST_BYTES
    for name, path in files(given, without):
        facts = _facts(path)
        left -= facts.st_size if facts else 0
        if left < 0 or len(found) == MOST_FILES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        found[name] = _contents(path, facts) if facts else _link(path)
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _facts(path: str) -> os.stat_result | None:
    """Returns the facts about a regular file; None of anything else, such as a link that leads nowhere. Raises OSError.
    """
    try:
        facts = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) and os.path.islink(path):
            return None
        raise
    return facts if stat.S_ISREG(facts.st_mode) else None


def _link(path: str) -> str:
    return f"-> {os.readlink(path)}" if os.path.islink(path) else ""


def _contents(path: str, facts: os.stat_result) -> str:
    """Returns the digest of a file. It is kept as long as the file does not change."""
    state = facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns
    if time.time_ns() - facts.st_ctime_ns < SETTLED_NS:
        return _read(path, facts.st_size)
    return _kept(path, facts.st_size, state)


@lru_cache(maxsize=2 * MOST_FILES)
def _kept(path: str, size: int, state: tuple[int, ...]) -> str:
    return _read(path, size)


def _read(path: str, size: int) -> str:
    """Returns the digest of as many bytes of a file. Files in /proc, where reading may wait forever, have no size."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while size and (block := file.read(min(size, 1 << 20))):
            found.update(block)
            size -= len(block)
    return found.hexdigest()
