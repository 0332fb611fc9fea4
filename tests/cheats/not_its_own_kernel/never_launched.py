"""Builds a kernel and never launches it.

Mechanism: a reader, or a harness that looks for `__global__` in the file or for a library that was built, finds a
kernel; the work is the library's. Caught because no kernel of its own ran: what counts is launches, not sources.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"


class ModelNew(nn.Module):
    scale_rows = staticmethod(kernels.scale_rows)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal[:, None] * matrix
