"""Python modules in compiled form that the harness keeps: where a process of ours stops going by them."""

from __future__ import annotations

import os
import sys

FOLDER, DO_NOT_WRITE = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"
"""What Python reads in its environment when it starts."""


def leave() -> None:
    """For a process in which foreign code comes next: what that imports isn't kept, and is found where it would be
    without us."""
    if os.environ.pop(FOLDER, None) is not None or sys.pycache_prefix is not None:
        sys.pycache_prefix, sys.dont_write_bytecode = None, True
