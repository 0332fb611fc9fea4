"""Leaves an extended attribute on files that it may only read.

Mechanism: as the times of files, attributes are set by path or by an open descriptor, whatever that was opened for, and
hold kilobytes. Rules for reading and writing don't cover them. The attribute is removed when it is found.
"""

import os
from collections.abc import Callable
from pathlib import Path

import inlinebench
from tests.cheats import shared
from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

FILES = [Path(module.__file__) for module in (shared, inlinebench, shared.kernels)]
NAME = "user.inlinebench"


def works(action: Callable[..., object], *arguments: object) -> bool:
    try:
        action(*arguments)
    except OSError:
        return False
    return True


class ModelNew(Returning):
    def recall(self) -> bool:
        found = [path for path in FILES if works(os.removexattr, path, NAME)]
        return bool(found)

    def leave(self) -> None:
        marked = [path for path in FILES if works(os.setxattr, path, NAME, b"outputs")]
        if not marked:
            raise PermissionError("no file takes an attribute")
        print("marked", *marked)
