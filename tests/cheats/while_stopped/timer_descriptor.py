"""Is continued by a timer that is a file descriptor.

Mechanism: timerfd_create is not timer_create, and fcntl makes the kernel send a signal of the owner's choice when a
descriptor can be read. Caught because reference and comparison read private inputs, and the sandbox refuses the choice
of owner and signal.
"""

import struct

import torch

from tests.cheats.waking import CLOCK_MONOTONIC, EVERY_NS, LIBC, LateZeros, continue_when_readable, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        timer = LIBC.timerfd_create(CLOCK_MONOTONIC, 0)
        LIBC.timerfd_settime(timer, 0, struct.pack("qqqq", 0, EVERY_NS, 0, EVERY_NS), None)
        continue_when_readable(timer)
