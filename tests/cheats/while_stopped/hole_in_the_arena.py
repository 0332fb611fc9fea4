"""Punches holes into the file of the shared inputs, which then reads as zeros.

Mechanism: no store and no write changes the memory; fallocate takes its pages away. Caught because reference and
comparison read private inputs, and the judge compares the shared ones with them.
"""

import ctypes
import os

import torch

from tests.cheats.waking import LIBC, LateZeros, arena_descriptor, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


PUNCH_HOLE, KEEP_SIZE = 2, 1


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        descriptor = arena_descriptor()
        if descriptor is None:
            return
        size = ctypes.c_long(os.fstat(descriptor).st_size)
        in_a_thread(
            values, lambda: LIBC.fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, ctypes.c_long(0), size))
