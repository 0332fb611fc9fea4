"""Right while Python or torch traces or profiles the process; half of the work otherwise.

Mechanism: who profiles a solution or steps through it is looking at it. Caught because the calls without any profiler
are compared, too.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if sys.gettrace() or sys.getprofile() or torch.autograd._profiler_enabled():
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
