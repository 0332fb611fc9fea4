"""Has siblings that take memory, so that no limit on itself and its descendants counts them.

Mechanism: clone with CLONE_PARENT makes a process that is not below its maker. Twelve of them take a GB each. Caught
because the sandbox refuses the flag. A sibling would be below the supervisor, whose whole tree is limited.
"""

import signal
import time

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import CLONE, CLONE_PARENT, LIBC

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

SIBLINGS, BYTES = 12, 1 << 30


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for _ in range(SIBLINGS):
            made = LIBC.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
            if made < 0:
                raise PermissionError("no siblings")
            if made == 0:
                self.taken = b"\1" * BYTES
                time.sleep(60)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
