"""What lies in a cache's folder, told by names and form. Nothing else there is ever counted or removed.

    <key's first two>/<key>/    an entry: a built library and its facts
    cuda_on_cpu/*.so            the harness's own libraries for the CPU
    cuda_on_cpu/prefix-*/       headers that it precompiled, those for GPUs too
    built/<hash>                notes of which libraries a solution was built into
    bytecode/                   Python modules in compiled form, where the installation keeps none
    peaks/*.json                what GPUs were measured to reach
    building-* entry-* gone-*   work under way, or left by a process that was killed
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
NOTES, CPU_LIBRARIES, PEAKS, BYTECODE = "built", "cuda_on_cpu", "peaks", "bytecode"

_SHELF, _HASH, _REST_OF_KEY = "[0-9a-f]{2}", "[0-9a-f]{64}", "[0-9a-f]{62}"
_RANDOM = "[a-z0-9_]{8}"
_WORK, _TEMPORARY, _GONE = f"({BUILDING}|{ENTRY}|{GONE}){_RANDOM}", f"tmp{_RANDOM}", GONE + _RANDOM
_OF_A_CACHE = re.compile(f"{_SHELF}|{NOTES}|{CPU_LIBRARIES}|{PEAKS}|{BYTECODE}|{_WORK}")


@dataclass(frozen=True)
class Item:
    """A file or folder with its bytes and when it was used last, in seconds since the epoch."""

    path: Path
    size: int
    used: float


def libraries(place: Path) -> list[Item]:
    """All that counts towards the limit: entries, the harness's own libraries for the CPU, and bytecode."""
    return [*entries(place), *cpu_libraries(place), *bytecode(place)]


def entries(place: Path) -> list[Item]:
    """Built libraries, each with its folder. What has no facts is no entry, whatever its name."""
    found = (item for shelf in shelves(place) for item in _folders(shelf, shelf.name + _REST_OF_KEY))
    return [item for item in found if (item.path / FACTS).is_file()]


def cpu_libraries(place: Path) -> list[Item]:
    """The harness's own libraries for the CPU, and the headers that it precompiled."""
    room = place / CPU_LIBRARIES
    return [*_files(room, r"lib.*\.so"), *_folders(room, PREFIXES)]


def bytecode(place: Path) -> list[Item]:
    """Python modules in compiled form, all of them as one."""
    return list(_folders(place, BYTECODE))


def peaks(place: Path) -> list[Item]:
    """What GPUs were measured to reach."""
    return list(_files(place / PEAKS, r".*\.json"))


def notes(place: Path) -> list[Item]:
    """Notes of what solutions were built into; used means written."""
    return list(_files(place / NOTES, _HASH))


def leftovers(place: Path) -> list[Item]:
    """Work under way, or what is left of it if its process was killed; used means touched."""
    return [
        *_folders(place, _WORK), *_files(place / NOTES, _TEMPORARY), *_folders(place / CPU_LIBRARIES, _TEMPORARY),
        *_files(place / CPU_LIBRARIES, _GONE), *_folders(place / CPU_LIBRARIES, _GONE),
        *(item for shelf in shelves(place) for item in _folders(shelf, _GONE)),
    ]


def shelves(place: Path) -> list[Path]:
    """The folders that entries lie in."""
    return [place / name for name in _names(place) if re.fullmatch(_SHELF, name)]


def strangers(place: Path) -> list[str]:
    """Names that no cache's folder has, sorted."""
    return sorted(name for name in _names(place) if not _OF_A_CACHE.fullmatch(name))


def noted(note: Path) -> list[Path] | None:
    """The libraries that a note names; None if there is no note that can be read."""
    try:
        return [Path(library) for library in json.loads(note.read_text())]
    except (OSError, ValueError, TypeError):
        return None


def item_of(library: Path) -> Path:
    """What is counted, kept and removed for a library: its entry, or the file alone."""
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
        with suppress(FileNotFoundError):  # it went away meanwhile
            facts = path.lstat()
            if is_kind(facts.st_mode):
                # Moving a thing out of the way leaves its time of use alone, and is what counts from there on.
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
