"""Is continued by a child that sends SIGCONT all the time.

Mechanism: whoever stops a process before its children leaves them the time to continue it. Caught because the tree is
stopped until all of it stays stopped, and reference and comparison read private inputs.
"""

import os
import signal

import torch

from tests.cheats.waking import LateZeros, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        parent = os.getpid()
        if os.fork() == 0:
            while True:
                os.kill(parent, signal.SIGCONT)
