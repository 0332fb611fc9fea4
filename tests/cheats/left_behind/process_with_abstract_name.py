"""Leaves a process that listens under an abstract name, for the next process of the same solution.

Mechanism: a process that left its session and whose parents have ended is nobody's child. It holds what it was given in
memory, and an abstract address needs no file. It ends by itself after forty seconds.
"""

import os
import socket
import time

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_SANDBOX = True

NAME = "\0inlinebench-left-behind"
LIFETIME_S = 40


class ModelNew(Returning):
    def recall(self) -> bool:
        with socket.socket(socket.AF_UNIX) as here:
            return here.connect_ex(NAME) == 0

    def leave(self) -> None:
        here = socket.socket(socket.AF_UNIX)
        here.bind(NAME)
        here.listen()
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                try:
                    os.setsid()
                finally:
                    time.sleep(LIFETIME_S)
            os._exit(0)
        os.waitpid(child, 0)
