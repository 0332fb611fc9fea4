"""Launches its own kernel on one element, as a fig leaf, and has the library do the rest.

Mechanism: a kernel of its own ran in each call, so a harness that only asks whether one did is content. Caught because
it makes up less than a hundredth of the time on the GPU, beside the very kernels that the reference uses.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "of its GPU time"
NEEDS_GPU = True
SHAPE = "full"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.diag(diagonal) @ matrix
        kernels.scale_rows_into(diagonal[:1], matrix[:1, :1], out[:1, :1])
        return out
