"""Lets the end of a parent continue its child while that is stopped.

Mechanism: with prctl(PR_SET_PDEATHSIG, SIGCONT) the kernel sends SIGCONT when a parent ends, which an order for later
does not need. The child sets the inputs to zero. Caught because reference and comparison read private inputs. The
sandbox also refuses to change the signal.
"""

import os
import signal
import time

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import LIBC, in_shared_memory, keep_at_zero

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            values = in_shared_memory(diagonal)
            if os.fork() == 0:
                if os.fork() == 0:
                    LIBC.prctl(1, signal.SIGCONT, 0, 0, 0)
                    keep_at_zero(values)
                time.sleep(0.05)
                os._exit(0)
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
