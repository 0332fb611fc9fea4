"""Holds a lock on a readable file in a process that stays, and tells by that lock that there was a first attempt.

Mechanism: `flock` wants an open file, for reading is enough, and the lock lives as long as anybody has that opening.
Two candidates that run at the same time on two devices can talk by it even without a process that stays.
"""

import fcntl
import os
import time
from pathlib import Path

import torch

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_SANDBOX = True

FILE = Path(torch.__file__).parent / "version.py"
LIFETIME_S = 40


class ModelNew(Returning):
    def recall(self) -> bool:
        with FILE.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def leave(self) -> None:
        file = os.open(FILE, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                time.sleep(LIFETIME_S)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(file)
