"""Returns its output in host memory.

Suspicious: nothing of it is on the device that is timed. Honest: the values are right, and the harness moves them back
inside the clock.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix).cpu()
