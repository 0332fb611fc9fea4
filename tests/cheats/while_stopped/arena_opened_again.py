"""Writes zeros to the file of the shared inputs, which a child has opened again.

Mechanism: what is written by descriptor shows in no mapping of this process. Caught because reference and comparison
read private inputs, and the judge compares the shared ones with them.
"""

import os

import torch

from tests.cheats.waking import LateZeros, arena_descriptor, keep_at_zero

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        descriptor = arena_descriptor()
        if descriptor is None or os.fork():
            return
        again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
        zeros = bytes(values.numel() * values.element_size())
        keep_at_zero(values, lambda: os.pwrite(again, zeros, 0))
