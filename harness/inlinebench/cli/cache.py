"""`inlinebench cache`: shows, prunes or clears the cache of built libraries."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from tabulate import tabulate

from inlinebench.cli.exits import show
from inlinebench.cli.parsing.parser import Parser
from inlinebench.compile.cache import contents
from inlinebench.compile.cache.contents import Item
from inlinebench.compile.cache.folder import cache_folder
from inlinebench.compile.cache.prune import Removed, clear, prune
from inlinebench.errors import UsageError
from inlinebench.foreign import one_line
from inlinebench.options import CACHE_LIMIT_GIB, OPTIONS
from inlinebench.options.kinds import CACHE, SIZE

PROGRAM = "inlinebench cache"
COMMANDS = ("show", "prune", "clear")
EXAMPLES = """\
show                   contents with sizes and ages
show --cache DIR       contents of another folder
prune                  remove the least recently used libraries beyond the limit
prune --limit 5        remove them until the rest is within 5 GiB
clear                  remove everything without confirmation"""
GIB = 2**30
LARGEST = 5
KINDS = {
    "built libraries": contents.entries,
    "CUDA on the CPU": contents.cpu_libraries,
    "records of builds": contents.notes,
    "last failures": contents.failures,
    "peaks of GPUs": contents.peaks,
    "unfinished builds": contents.leftovers,
}


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Runs the command and returns its exit status, 0. Raises UsageError."""
    given = parser(environment).parse_args(arguments)
    if given.limit is not None and given.command != "prune":
        raise UsageError("--limit works only with prune")
    try:
        folder = OPTIONS["cache"].default_in(environment) if given.cache is None else given.cache
        text = _run(given, folder.absolute(), environment)
    except OSError as error:
        raise UsageError(f"{error.filename or given.cache}: {error.strerror}; name the cache's folder with --cache"
                         ) from error
    show(text)
    return 0


def parser(environment: Mapping[str, str] = os.environ) -> Parser:
    found = Parser(PROGRAM, "Shows, prunes or clears the cache of built libraries.", examples=EXAMPLES)
    add = found.add_argument
    add("command", choices=COMMANDS, help="list the contents with sizes and ages; remove the least recently used "
        "libraries beyond the limit, and leftovers of killed runs; or remove everything without confirmation")
    add("--cache", type=CACHE.parse, metavar="DIR",
        help="the cache's folder (default: INLINEBENCH_CACHE, or ~/.cache/inlinebench)")
    add("--limit", metavar="GIB", help="with prune: the size to keep "
        f"(default: INLINEBENCH_CACHE_LIMIT, or {CACHE_LIMIT_GIB:g})")
    return found


def _run(given: argparse.Namespace, folder: Path, environment: Mapping[str, str]) -> str:
    limit = _limit(given, environment)  # read first: a wrong one is refused whether or not there is a cache
    if not os.path.lexists(folder):
        return f"{folder}: the cache is empty"
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the cache's folder with --cache")
    root = cache_folder(folder)
    if given.command == "show":
        return _contents(root)
    if found := contents.unknown_names(root):
        raise UsageError(f"{root} contains {found[0]!r}, which is not part of a cache, so nothing is removed: move "
                         "it, or name the cache's folder with --cache")
    if given.command == "clear":
        return _clear(root)
    return _prune(root, limit)


def _limit(given: argparse.Namespace, environment: Mapping[str, str]) -> float:
    """Returns the size to keep, in bytes. Only `prune` uses it."""
    if given.command != "prune":
        return 0.0
    default = OPTIONS["cache_limit"].default_in
    gib: float = default(environment) if given.limit is None else SIZE.read("--limit ", given.limit)
    return GIB * gib


def _contents(root: Path) -> str:
    """A table of the contents of a cache, and one of its largest libraries."""
    held = {kind: found for kind, find in KINDS.items() if (found := find(root))}
    if not held:
        return f"{root}: the cache is empty"
    rows = [_row(kind, items) for kind, items in held.items()]
    rows.append(_row("all", [item for items in held.values() for item in items]))
    tables = [_table(["kind", "how many", "size", "oldest use", "newest use"], rows, "lrrll")]
    if largest := sorted(contents.libraries(root), key=lambda item: -item.size)[:LARGEST]:
        rows = [_largest_row(item) for item in largest]
        tables.append(_table(["largest", "key", "size", "last use"], rows, "llrl"))
    return "\n\n".join([str(root), *tables])


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    sides = {"l": "left", "r": "right"}
    return str(tabulate(rows, headers=headers, colalign=[sides[side] for side in align], disable_numparse=True))


def _row(kind: str, items: Sequence[Item]) -> list[str]:
    used = [item.used for item in items]
    return [kind, str(len(items)), size_text(_size(items)), _time(min(used)), _time(max(used))]


def _largest_row(item: Item) -> list[str]:
    key = item.path.name[:12] if item.path.is_dir() else ""
    name = next((library.name for library in item.path.glob("*.so")), "") if key else item.path.name
    return [one_line(name), key, size_text(item.size), _time(item.used)]


def _prune(root: Path, limit: float) -> str:
    text = _removed_text(root, prune(root, limit))
    if (total := _size(contents.libraries(root))) > limit:
        text += f"; {size_text(total)} remain, above the limit: they are in use, or were used in the last hour"
    return text


def _clear(root: Path) -> str:
    text = _removed_text(root, clear(root))
    if stay := len(contents.libraries(root)) + len(contents.leftovers(root)):
        text += f"; {stay} kept: running evaluations may need them"
    return text


def _removed_text(root: Path, removed: Removed) -> str:
    counts = [_count(removed.libraries, "library", "libraries"), _count(removed.notes, "note"),
              _count(removed.peaks, "GPU's peaks", "GPUs' peaks"), _count(removed.leftovers, "leftover")]
    what = ", ".join(filter(None, counts))
    return f"{root}: removed {what} ({size_text(removed.size)})" if what else f"{root}: nothing to remove"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}" if number else ""


def _size(items: Sequence[Item]) -> int:
    return sum(item.size for item in items)


def size_text(size: float) -> str:
    """A size in bytes as text: `0 B`, `1023 B`, `1.5 MiB`."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} GiB"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
