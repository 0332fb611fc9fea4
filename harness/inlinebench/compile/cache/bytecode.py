"""The cache's folder for compiled Python modules.

Python checks whether a compiled module matches its source, but not who wrote it. So no other user may even enter the
folder, because the modes of its files are those of their sources.
"""

from __future__ import annotations

from pathlib import Path

from inlinebench.compile.cache.contents import BYTECODE
from inlinebench.compile.cache.folder import PRIVATE, is_closed, make_cache_folder
from inlinebench.compile.cache.prune import mark_used, take_away


def make_folder(cache: Path) -> Path:
    """Returns the folder and marks it as used. Creates it if it is missing, or if others could have written to it.

    Raises UsageError or OSError if the cache cannot be trusted or written.
    """
    folder = make_cache_folder(cache.expanduser().absolute()) / BYTECODE
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    if not is_closed(folder):
        take_away(folder)
        folder.mkdir(mode=PRIVATE)
    mark_used(folder)
    return folder
