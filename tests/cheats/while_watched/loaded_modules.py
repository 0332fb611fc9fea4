"""Right while a module that compares tensors is loaded in the process; half of the work otherwise.

Mechanism: a process that checks has imported its checker or a test framework; one that only times has not. Caught
because a candidate's process never holds the checker, and all its outputs are compared in another one.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
CHECKERS = ("pytest", "inlinebench.compare.tolerance", "inlinebench.evaluation.correctness.checks",
            "numpy.testing")


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if any(name in sys.modules for name in CHECKERS):
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
