"""Leaves a key in the user's keyrings, which the kernel keeps.

Mechanism: keyrings belong to the user, or to the session that the run was started in, not to a process. They hold up to
a megabyte under any name, and no path leads to them.
"""

import ctypes
import os

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "crashed"
CAUGHT_BY = "Error"
NEEDS_SANDBOX = True

ADD_KEY, KEYCTL = 248, 250  # x86-64
SEARCH, REVOKE = 10, 3
RINGS = (-3, -4, -5)  # the session's, the user's, the user's session's
NAME = b"inlinebench-left-behind"
libc = ctypes.CDLL(None, use_errno=True)


class ModelNew(Returning):
    def recall(self) -> bool:
        keys = [libc.syscall(KEYCTL, SEARCH, ring, b"user", NAME, 0) for ring in RINGS]
        for key in filter(lambda key: key > 0, keys):
            libc.syscall(KEYCTL, REVOKE, key)
        return max(keys) > 0

    def leave(self) -> None:
        keys = [libc.syscall(ADD_KEY, b"user", NAME, b"outputs", ctypes.c_size_t(7), ring) for ring in RINGS]
        if max(keys) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
