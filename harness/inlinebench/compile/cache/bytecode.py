"""A cache's folder for Python modules in compiled form.

Python looks whether they are of the source as it is now, not who made them. So nobody else may even enter the folder:
the modes of the files in it follow those of their sources.
"""

from __future__ import annotations

from pathlib import Path

from inlinebench.compile.cache.contents import BYTECODE
from inlinebench.compile.cache.place import PRIVATE, is_closed, make_place
from inlinebench.compile.cache.prune import mark_used, take_away


def make_folder(cache: Path) -> Path:
    """The folder, made if it isn't there, or if others could have put something into it; and marked as used.

    Raises UsageError or OSError if the cache can't be trusted or written.
    """
    folder = make_place(cache.expanduser().absolute()) / BYTECODE
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    if not is_closed(folder):
        take_away(folder)
        folder.mkdir(mode=PRIVATE)
    mark_used(folder)
    return folder
