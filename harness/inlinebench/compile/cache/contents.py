"""Recognizes the contents of a cache's folder by name and form. Everything else in it is never counted or removed.

    <key's first two>/<key>/    an entry: a built library and its facts
    cuda_on_cpu/*.so            the runtime libraries for the CPU
    cuda_on_cpu/prefix-*/       precompiled headers, for the CPU and for GPUs
    built/<hash>                notes of the libraries that a solution was built into
    bytecode/                   a leftover of earlier versions
    failed/<hash>               the solutions that failed last, for --last-failed
    peaks/*.json                measured peaks of GPUs
    building-* entry-* gone-*   work in progress, or leftovers of a process that was killed
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FACTS = "facts.json"
PREFIXES = r"prefix-[0-9a-f]{16}"
BUILDING, ENTRY, GONE = "building-", "entry-", "gone-"
NOTES, CPU_LIBRARIES, PEAKS, FAILED = "built", "cuda_on_cpu", "peaks", "failed"

_ENTRY_FOLDER, _HASH, _REST_OF_KEY = "[0-9a-f]{2}", "[0-9a-f]{64}", "[0-9a-f]{62}"
_RANDOM = "[a-z0-9_]{8}"
_WORK, _TEMPORARY, _GONE = f"(?:{BUILDING}|{ENTRY}|{GONE}){_RANDOM}|bytecode", f"tmp{_RANDOM}", GONE + _RANDOM
_OF_A_CACHE = re.compile(f"{_ENTRY_FOLDER}|{NOTES}|{CPU_LIBRARIES}|{PEAKS}|{FAILED}|{_WORK}")


@dataclass(frozen=True)
class Item:
    """A file or folder of the cache."""

    path: Path
    size: int
    """Bytes."""
    used: float
    """Time of the last use in seconds since the epoch."""


def libraries(root: Path) -> list[Item]:
    """Returns everything that counts towards the limit: entries and runtime libraries for the CPU."""
    return [*entries(root), *cpu_libraries(root)]


def entries(root: Path) -> list[Item]:
    """Returns the entries: folders with a built library. A folder without a facts file is not an entry."""
    found = (item for folder in entry_folders(root) for item in _folders(folder, folder.name + _REST_OF_KEY))
    return [item for item in found if (item.path / FACTS).is_file()]


def cpu_libraries(root: Path) -> list[Item]:
    """Returns the runtime libraries for the CPU and the precompiled headers."""
    folder = root / CPU_LIBRARIES
    return [*_files(folder, r"lib.*\.so"), *_folders(folder, PREFIXES)]


def peaks(root: Path) -> list[Item]:
    """Returns the files with measured peaks of GPUs."""
    return list(_files(root / PEAKS, r".*\.json"))


def notes(root: Path) -> list[Item]:
    """Returns the notes of the libraries that solutions were built into. `used` is the time of writing."""
    return list(_files(root / NOTES, _HASH))


def failures(root: Path) -> list[Item]:
    """Returns the files with the solutions that failed last."""
    return list(_files(root / FAILED, _HASH))


def leftovers(root: Path) -> list[Item]:
    """Returns work in progress and leftovers of killed processes. `used` is the time of the last change."""
    return [
        *_folders(root, _WORK), *_files(root / NOTES, _TEMPORARY), *_files(root / FAILED, rf"{_HASH}\.[0-9]+"),
        *_folders(root / CPU_LIBRARIES, _TEMPORARY),
        *_files(root / CPU_LIBRARIES, _GONE), *_folders(root / CPU_LIBRARIES, _GONE),
        *(item for folder in entry_folders(root) for item in _folders(folder, _GONE)),
    ]


def entry_folders(root: Path) -> list[Path]:
    """Returns the folders that contain entries."""
    return [root / name for name in _names(root) if re.fullmatch(_ENTRY_FOLDER, name)]


def unknown_names(root: Path) -> list[str]:
    """Returns the names in a folder that do not belong to a cache, sorted."""
    return sorted(name for name in _names(root) if not _OF_A_CACHE.fullmatch(name))


def noted(note: Path) -> list[Path] | None:
    """Returns the libraries in a note, or None if the note cannot be read."""
    try:
        return [Path(library) for library in json.loads(note.read_text())]
    except (OSError, ValueError, TypeError):
        return None


def item_of(library: Path) -> Path:
    """Returns the item that a library belongs to: its entry, or the file itself."""
    return library if library.parent.name == CPU_LIBRARIES else library.parent


def _files(folder: Path, names: str) -> Iterator[Item]:
    return _items(folder, names, stat.S_ISREG)


def _folders(folder: Path, names: str) -> Iterator[Item]:
    return _items(folder, names, stat.S_ISDIR)


def _items(folder: Path, names: str, is_kind: Callable[[int], bool]) -> Iterator[Item]:
    for name in _names(folder):
        path = folder / name
        if not re.fullmatch(names, name):
            continue
        with suppress(FileNotFoundError):  # removed in the meantime
            facts = path.lstat()
            if is_kind(facts.st_mode):
                # Renaming keeps the modification time; for a renamed item the time of renaming counts.
                used = facts.st_ctime if name.startswith(GONE) else facts.st_mtime
                yield Item(path, _size(path), used)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(path: Path) -> int:
    files = [path] if not path.is_dir() else [
        Path(folder) / name for folder, _, names in os.walk(path) for name in names
    ]
    total = 0
    for file in files:
        with suppress(FileNotFoundError):
            total += file.lstat().st_size
    return total
