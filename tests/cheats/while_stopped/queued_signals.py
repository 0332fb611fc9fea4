"""Two children queue SIGCONT for each other and for their parent, by rt_sigqueueinfo.

Mechanism: as `signal_from_a_child`, with another system call, and with two processes that continue each other. Caught
as that one is.
"""

import os
import signal
import struct

import torch

from tests.cheats.waking import LIBC, LateZeros, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


RT_SIGQUEUEINFO, SI_QUEUE = 129, -1


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        others = [os.getpid()]
        information = struct.pack("iii116x", signal.SIGCONT, 0, SI_QUEUE)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                while True:
                    for process in others:
                        LIBC.syscall(RT_SIGQUEUEINFO, process, signal.SIGCONT, information)
            others.append(child)
