"""Makes a build request independent of the candidate's private files.

A compiler cannot read these files, and their paths differ from run to run, so the cache would never find the build
again. So the request contains the text of private headers that sources include, and the author's paths for everything
else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inlinebench.candidate.files import Files

OWN = "own"
"""The folder of a build that contains the headers from the request."""
_EMPTY = "empty"
"""An empty file in each include folder there. It creates the folder, because `../header.h` needs an existing one."""
LARGEST_HEADER = 1 << 20
"""The most bytes of a header in a request. The compiler reads larger headers from the author's folder."""
_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*[<"])([^>"\n]+)', re.MULTILINE)
_LINE = re.compile(r'^([ \t]*#[ \t]*line[ \t]+\d+[ \t]*")([^"\n]+)', re.MULTILINE)
_FOLDER = re.compile(r"-(?:I|isystem|iquote|idirafter)\s*(\S+)")
_SOURCES = ("cpp_sources", "cuda_sources")
_FLAGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")


def for_build(facts: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """Returns the fields of a build request in a form that other processes can use.

    In sources, only `#include` and `#line` directives change. A path that the program opens at run time stays the same.
    """
    given = [_absolute(folder) for folder in facts["extra_include_paths"]]
    by_flag = [_absolute(folder) for name in _FLAGS for folder in _FOLDER.findall(" ".join(facts[name]))]
    headers = _headers([text for name in _SOURCES for text in facts[name]], [*by_flag, *given], files)
    folders = [*_folders(by_flag, files, headers, authors=False), *_folders(given, files, headers)]
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
    folders: Sequence[Path], files: Files, headers: Collection[str], *, authors: bool = True
) -> Iterator[str]:
    """Yields the include folders that replace these: those with headers from the request, and with `authors` also the
    author's folders."""
    for folder in folders:
        relative = files.relative(folder)
        if relative is not None and headers:
            yield os.path.normpath(f"{OWN}/{relative}")
        if authors and (relative is None or files.is_copy(folder)):
            yield files.by_author(str(folder))


def _headers(texts: Sequence[str], folders: Sequence[Path], files: Files) -> dict[str, tuple[Path, str]]:
    """Returns path and text of the private files that sources include, directly or indirectly, by their relative names.
    """
    found: dict[str, tuple[Path, str]] = {}
    todo = [(text, list(folders)) for text in texts]
    for text, search in todo:  # the list grows by the headers that are found
        included = [_absolute(folder / name) for _, name in _INCLUDE.findall(text) for folder in (*search, Path("/"))]
        for path in included:
            relative = files.relative(path)
            if relative is not None and relative not in found and _is_header(path):
                found[relative] = (path, path.read_text(encoding="utf-8", errors="replace"))
                todo.append((found[relative][1], [path.parent, *folders]))
    return found


def _is_header(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= LARGEST_HEADER and os.access(path, os.R_OK)
    except (OSError, ValueError):  # not a valid path
        return False


def _with_names(text: str, files: Files, headers: Collection[str]) -> str:
    """Returns a source with the author's paths in `#line`, and relative paths where it includes a private file by its
    absolute path."""

    def include(match: re.Match[str]) -> str:
        relative = files.relative(Path(match[2]))
        return match[1] + (relative if relative in headers and relative is not None else files.by_author(match[2]))

    return _INCLUDE.sub(include, _LINE.sub(lambda match: match[1] + _label(Path(match[2]), files), text))


def _label(path: Path, files: Files) -> str:
    """Returns the author's path of a file, or only the name of a private file that is not a copy, because temporary
    folders have random names."""
    if files.relative(path) is None or files.is_copy(path):
        return files.by_author(str(path))
    return path.name
