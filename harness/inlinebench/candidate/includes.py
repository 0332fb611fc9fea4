"""A build request without what only this process can read, and without paths that differ from run to run.

A compiler can't read a candidate's private files, and a path that is new each time would never be found in the cache.
So the headers that sources include from there travel as text, and all else goes by the author's names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inlinebench.candidate.files import Files

OWN = "own"
"""The folder of a build in which the headers lie that travel with the request."""
_EMPTY = "empty"
"""A file in each folder there that a compiler looks in, because `../header.h` is only found from one that exists."""
LARGEST_HEADER = 1 << 20
"""Bytes. A larger one is read where the author has it."""
_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*[<"])([^>"\n]+)', re.MULTILINE)
_LINE = re.compile(r'^([ \t]*#[ \t]*line[ \t]+\d+[ \t]*")([^"\n]+)', re.MULTILINE)
_FOLDER = re.compile(r"-(?:I|isystem|iquote|idirafter)\s*(\S+)")
_SOURCES = ("cpp_sources", "cuda_sources")
_FLAGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")


def for_build(facts: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """The facts of a build request, as another process can use them.

    Of sources only directives change: a path that the program opens when it runs has to stay what it is.
    """
    given = [_absolute(folder) for folder in facts["extra_include_paths"]]
    by_flag = [_absolute(folder) for name in _FLAGS for folder in _FOLDER.findall(" ".join(facts[name]))]
    headers = _headers([text for name in _SOURCES for text in facts[name]], [*by_flag, *given], files)
    folders = [*_folders(by_flag, files, headers, others=False), *_folders(given, files, headers)]
    texts = {f"{folder}/{_EMPTY}": "" for folder in folders if headers and not os.path.isabs(folder)}
    texts |= {f"{OWN}/{name}": _with_names(f'#line 1 "{path}"\n{inside}', files, headers)
              for name, (path, inside) in headers.items()}
    return {
        **facts,
        **{name: [_with_names(text, files, headers) for text in facts[name]] for name in _SOURCES},
        **{name: [files.by_author(flag) for flag in facts[name]] for name in _FLAGS},
        "extra_include_paths": [*folders, *([OWN] if headers else [])],
        "headers": texts,
    }


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(path))


def _folders(
    folders: Sequence[Path], files: Files, headers: Collection[str], *, others: bool = True
) -> Iterator[str]:
    """Where a compiler looks in place of these folders: among the headers that travel, and (`others`) at the author's.
    """
    for folder in folders:
        relative = files.relative(folder)
        if relative is not None and headers:
            yield os.path.normpath(f"{OWN}/{relative}")
        if others and (relative is None or files.is_copy(folder)):
            yield files.by_author(str(folder))


def _headers(texts: Sequence[str], folders: Sequence[Path], files: Files) -> dict[str, tuple[Path, str]]:
    """The private files that sources include, directly or through one another: path and text by their relative names.
    """
    found: dict[str, tuple[Path, str]] = {}
    todo = [(text, list(folders)) for text in texts]
    for text, places in todo:  # which grows
        included = [_absolute(place / name) for _, name in _INCLUDE.findall(text) for place in (*places, Path("/"))]
        for path in included:
            relative = files.relative(path)
            if relative is not None and relative not in found and _is_header(path):
                found[relative] = (path, path.read_text(encoding="utf-8", errors="replace"))
                todo.append((found[relative][1], [path.parent, *folders]))
    return found


def _is_header(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= LARGEST_HEADER and os.access(path, os.R_OK)
    except (OSError, ValueError):  # what stands there is not the name of a file
        return False


def _with_names(text: str, files: Files, headers: Collection[str]) -> str:
    """A source with the author's names in `#line`, for messages, and relative ones where it includes a private file by
    its absolute path."""

    def include(match: re.Match[str]) -> str:
        relative = files.relative(Path(match[2]))
        return match[1] + (relative if relative in headers and relative is not None else files.by_author(match[2]))

    return _INCLUDE.sub(include, _LINE.sub(lambda match: match[1] + _label(Path(match[2]), files), text))


def _label(path: Path, files: Files) -> str:
    """The author's name of a file. Of one that was written elsewhere it is the last part: temporary folders have random
    names."""
    if files.relative(path) is None or files.is_copy(path):
        return files.by_author(str(path))
    return path.name
