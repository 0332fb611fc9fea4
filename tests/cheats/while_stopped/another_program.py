"""Sets the inputs to zero from another program, to which it hands the descriptor.

Mechanism: what a process starts by exec has none of its threads, memory and handlers. Caught because it is below the
supervisor as everything is, and reference and comparison read private inputs.
"""

import subprocess
import sys

import torch

from tests.cheats.waking import LateZeros, arena_descriptor

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


PROGRAM = """
import os, sys
descriptor = int(sys.argv[1])
zeros = bytes(os.fstat(descriptor).st_size)
known = os.pread(descriptor, len(zeros), 0)
while os.pread(descriptor, len(zeros), 0) == known:
    pass
while True:
    os.pwrite(descriptor, zeros, 0)
"""


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        descriptor = arena_descriptor()
        if descriptor is not None:
            subprocess.Popen([sys.executable, "-c", PROGRAM, str(descriptor)], pass_fds=[descriptor])
