"""As `sibling`, with a child that makes siblings and ends.

Mechanism: the child's sibling is a child of this process, and an orphan after its end. Caught as `sibling` is.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import in_a_sibling, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            if os.fork() == 0:
                in_a_sibling(in_shared_memory(diagonal))
                os._exit(0)
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
