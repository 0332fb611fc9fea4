"""Is continued when the judge writes to one of its descriptors, whose owner is a thread.

Mechanism: as `signal_of_a_pipe`, with F_SETOWN_EX, which takes a struct that a filter of system calls cannot read.
Caught because reference and comparison read private inputs, and the sandbox refuses the command itself.
"""

import os
import struct
import threading

import torch

from tests.cheats.waking import LateZeros, continue_when_readable, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


F_SETOWN_EX, F_OWNER_TID = 15, 0


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        for descriptor in (int(name) for name in os.listdir("/proc/self/fd")):
            try:
                continue_when_readable(
                    descriptor, F_SETOWN_EX, struct.pack("ii", F_OWNER_TID, threading.get_native_id()))
            except OSError:  # the descriptor that listed the folder
                continue
