"""Stops the use of the harness's cache of compiled Python modules in processes that run foreign code."""

from __future__ import annotations

import os
import sys

FOLDER, DO_NOT_WRITE = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"
"""Environment variables that Python reads when it starts."""


def leave() -> None:
    """Stops reading and writing the cache in this process, before it runs foreign code: its imports are not cached, and
    compiled modules are found where they would be without the harness."""
    if os.environ.pop(FOLDER, None) is not None or sys.pycache_prefix is not None:
        sys.pycache_prefix, sys.dont_write_bytecode = None, True
