"""As `timer`, with a timer whose signal goes to one thread.

Mechanism: SIGCONT continues the whole process, whichever thread it is sent to. Caught as `timer` is.
"""

import threading

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import continue_by_timer, in_a_thread, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            in_a_thread(in_shared_memory(diagonal))
            continue_by_timer(4, threading.get_native_id())
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
