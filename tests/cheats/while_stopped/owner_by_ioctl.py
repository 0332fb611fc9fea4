"""Is continued when the judge writes to one of its descriptors, whose owner an ioctl has set.

Mechanism: FIOSETOWN and FIOASYNC do what F_SETOWN and O_ASYNC do. Caught because reference and comparison read private
inputs, and the sandbox refuses the choice of owner and signal.
"""

import fcntl
import os
import signal
import struct

import torch

from tests.cheats.waking import LateZeros, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


FIOSETOWN, FIOASYNC = 0x8901, 0x5452


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        for descriptor in (int(name) for name in os.listdir("/proc/self/fd")):
            for request in (
                lambda: fcntl.ioctl(descriptor, FIOSETOWN, struct.pack("i", os.getpid())),  # noqa: B023 - called at once
                lambda: fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGCONT),  # noqa: B023
                lambda: fcntl.ioctl(descriptor, FIOASYNC, struct.pack("i", 1)),  # noqa: B023
            ):
                try:
                    request()
                except OSError:
                    continue
