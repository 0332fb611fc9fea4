"""Right in continuous integration and under test runners, by their environment variables; half of the work elsewhere.

Mechanism: reviewers run a solution in a test, the leaderboard runs it in another environment. Caught because the
output is compared in whatever environment its time is taken, and a candidate's environment is always the same.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
WATCHED = any(name.startswith(("PYTEST", "CHECK", "VERIFY")) for name in os.environ)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if WATCHED:
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
