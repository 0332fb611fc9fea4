"""Is continued by a message queue when a message arrives.

Mechanism: mq_notify sends a signal of the caller's choice, and a message can be ordered by a process that ends later.
Caught because reference and comparison read private inputs. The sandbox also refuses message queues.
"""

import os
import signal
import struct
import time

import torch

from tests.cheats.waking import LIBC, LateZeros, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        in_a_thread(values)
        queue = LIBC.mq_open(b"/wakes", os.O_RDWR | os.O_CREAT, 0o600, None)
        LIBC.mq_unlink(b"/wakes")
        LIBC.mq_notify(queue, struct.pack("qiii44x", 0, signal.SIGCONT, 0, 0))
        if os.fork() == 0:
            time.sleep(0.05)
            LIBC.mq_send(queue, b"now", 3, 0)
            os._exit(0)
