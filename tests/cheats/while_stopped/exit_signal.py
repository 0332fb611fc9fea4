"""Lets the end of a child continue its parent while that is stopped.

Mechanism: the low byte of clone's flags is the signal that a parent gets when the child ends; it can be SIGCONT. Caught
because reference and comparison read private inputs, and the sandbox refuses other signals than SIGCHLD.
"""

import os
import signal
import time

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import CLONE, LIBC, in_a_thread, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            in_a_thread(in_shared_memory(diagonal))
            if LIBC.syscall(CLONE, signal.SIGCONT, 0, 0, 0, 0) == 0:
                time.sleep(0.05)
                os._exit(0)
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
