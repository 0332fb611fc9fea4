"""Sets the inputs to zero from a process that hands on to a new one all the time.

Mechanism: a process that forks and ends a thousand times a second is never the one that a list of processes names.
Caught because a signal to the process group reaches all of it at once, and reference and comparison read private
inputs.
"""

import os
import time

import torch

from tests.cheats.waking import LateZeros, await_next

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


LASTS_S = 0.0005


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        if os.fork() == 0:
            await_next(values)
            while True:
                until = time.monotonic() + LASTS_S
                while time.monotonic() < until:
                    values.zero_()
                if os.fork():
                    os._exit(0)
