"""Leaves the work to a finaliser, which runs when the output is thrown away.

Mechanism: `del output` comes after the stop event, and a harness that kept a view of the memory finds it written
then. Caught because the output is copied while it is alive.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class Later:
    """Does the work when it dies."""

    def __init__(self, *work: torch.Tensor) -> None:
        self.work = work

    def __del__(self) -> None:
        kernels.scale_rows_into(*self.work)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        out.later = Later(diagonal, matrix, out.detach())
        return out
