"""Writes to the file of the shared inputs by system calls that take long.

Mechanism: a process stops when it returns from the kernel, and a large write may still be going on when its signal has
arrived. Caught because the judge waits until each thread has stopped, and reference and comparison read private inputs.
"""

import os

import torch

from tests.cheats.waking import LateZeros, arena_descriptor, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        descriptor = arena_descriptor()
        if descriptor is None:
            return
        zeros = bytes(os.fstat(descriptor).st_size)
        for _ in range(2):
            in_a_thread(values, lambda: os.pwritev(descriptor, [zeros], 0))
