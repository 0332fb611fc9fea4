"""Python modules in compiled form, which the cache keeps where the installation doesn't.

Images are often made with PYTHONDONTWRITEBYTECODE, and some installations can't be written. There Python compiles the
thousand modules of torch anew in each process that imports it, which takes longer than the rest of the import.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from inlinebench.records.errors import UsageError
from inlinebench.wire.bytecode import DO_NOT_WRITE, FOLDER


def environment(cache: Path, package: str = "torch") -> dict[str, str]:
    """What a process that imports the package has in its environment besides, so that this is compiled once; nothing
    where the installation keeps it compiled, or is about to."""
    if not _is_compiled_anew(package):
        return {}
    from inlinebench.compile.cache.bytecode import make_folder  # not before: a judge is waiting to be started

    try:
        return {FOLDER: str(make_folder(cache)), DO_NOT_WRITE: ""}
    except (OSError, UsageError):
        return {}  # the build service, which can't do without the cache, says why it can't be written or trusted


def _is_compiled_anew(package: str) -> bool:
    """Whether every process that imports a package compiles it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return False  # whoever imports it says what is missing
    source = Path(spec.origin)
    kept = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    return not kept.exists() and (bool(os.environ.get(DO_NOT_WRITE)) or not os.access(source.parent, os.W_OK))
