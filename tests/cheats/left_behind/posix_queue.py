"""Leaves a message in a POSIX queue, which lies in no folder.

Mechanism: message queues outlive the process that made them, and are opened by name, without any file system that a
sandbox guards. They belong to a namespace for such objects; where all candidates share one, they can talk.
"""

import ctypes
import os

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

NAME = b"/inlinebench-left-behind"
libc = ctypes.CDLL("librt.so.1", use_errno=True)


class ModelNew(Returning):
    def recall(self) -> bool:
        found = libc.mq_open(NAME, os.O_RDONLY) >= 0
        if found:
            libc.mq_unlink(NAME)
        return found

    def leave(self) -> None:
        if libc.mq_open(NAME, os.O_RDWR | os.O_CREAT, 0o600, None) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
