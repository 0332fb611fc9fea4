"""Is continued by a timer while it is stopped, and sets the inputs to zero before they are read.

Mechanism: SIGSTOP is undone by any SIGCONT, also by one that a POSIX timer sends, which needs no running process.
Caught because reference and comparison read private inputs, so an answer of zeros is wrong. The sandbox also refuses
the timer, and CPU times would show that the process ran.
"""

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
            continue_by_timer(0)
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
