"""Caches the bytecode of Python modules where the installation cannot.

Container images are often built with PYTHONDONTWRITEBYTECODE, and some installations are read-only. There, each process
that imports torch compiles its thousand modules again, which takes longer than the rest of the import.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from inlinebench.records.errors import UsageError
from inlinebench.wire.bytecode import DO_NOT_WRITE, FOLDER


def environment(cache: Path, package: str = "torch") -> dict[str, str]:
    """Returns environment variables with which processes that import the package cache its bytecode.

    Empty if the installation has the bytecode, or Python is about to write it there.
    """
    if not _is_compiled_anew(package):
        return {}
    from inlinebench.compile.cache.bytecode import make_folder  # imported late, so that the judge starts sooner

    try:
        return {FOLDER: str(make_folder(cache)), DO_NOT_WRITE: ""}
    except (OSError, UsageError):
        return {}  # the build service reports an unusable cache


def _is_compiled_anew(package: str) -> bool:
    """Whether every process that imports a package compiles it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return False  # the import itself reports a missing package
    source = Path(spec.origin)
    kept = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    return not kept.exists() and (bool(os.environ.get(DO_NOT_WRITE)) or not os.access(source.parent, os.W_OK))
