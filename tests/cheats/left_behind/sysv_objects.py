"""Leaves a segment of memory, a set of semaphores and a queue of System V, each under a number.

Mechanism: these objects stay until they are removed or the machine restarts. No folder holds them, so rules for files
say nothing about them.
"""

import ctypes
import os

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

KEY, CREATE, REMOVE = 0x1B5EED, 0o1600, 0
libc = ctypes.CDLL(None, use_errno=True)


class ModelNew(Returning):
    def recall(self) -> bool:
        memory, semaphores, queue = libc.shmget(KEY, 0, 0), libc.semget(KEY, 0, 0), libc.msgget(KEY, 0)
        if memory >= 0:
            libc.shmctl(memory, REMOVE, None)
        if semaphores >= 0:
            libc.semctl(semaphores, 0, REMOVE)
        if queue >= 0:
            libc.msgctl(queue, REMOVE, None)
        return max(memory, semaphores, queue) >= 0

    def leave(self) -> None:
        made = (libc.shmget(KEY, 4096, CREATE), libc.semget(KEY, 1, CREATE), libc.msgget(KEY, CREATE))
        if max(made) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
