"""Is continued when the judge writes to one of its descriptors.

Mechanism: fcntl makes the kernel send a signal of the owner's choice (F_SETSIG) as soon as something can be read.
Caught because reference and comparison read private inputs, and the sandbox refuses the choice of owner and signal.
"""

import fcntl
import os
import signal

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import in_a_thread, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            in_a_thread(in_shared_memory(diagonal))
            for descriptor in (int(name) for name in os.listdir("/proc/self/fd")):
                try:
                    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
                    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGCONT)
                    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
                except OSError:
                    continue
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
