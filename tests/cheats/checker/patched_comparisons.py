"""Patches every function that compares tensors, and returns zeros.

Mechanism: a harness in the same process asks `torch.allclose`, `torch.testing.assert_close` or numpy, and is told
that all is well. Caught because the judge compares in a process of its own, where no solution is ever imported.
"""

from typing import Any

import numpy
import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def all_is_well(*_args: Any, **_named: Any) -> bool:
    return True


for owner in (torch, torch.Tensor, numpy, torch.testing, numpy.testing):
    for name in ("allclose", "equal", "array_equal", "assert_close", "assert_allclose", "assert_array_equal"):
        if hasattr(owner, name):
            setattr(owner, name, all_is_well)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(matrix)
