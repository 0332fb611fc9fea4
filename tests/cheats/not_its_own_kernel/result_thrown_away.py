"""Launches its own kernel on a small part of the inputs and throws the result away.

Mechanism: as with one element, but the kernel's grid is large enough to look like work to whoever counts blocks. Caught
because it makes up less than a hundredth of the time on the GPU, beside the very kernels that the reference uses.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "of its GPU time"
NEEDS_GPU = True
SHAPE = "full"

ROWS = 32


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.scale_rows(diagonal[:ROWS], matrix[:ROWS])
        return torch.diag(diagonal) @ matrix
