"""Patches the operators of `torch.Tensor`, so that all tensors are equal and no difference is large; returns zeros.

Mechanism: a hand-written comparison in the same process says `(out - expected).abs().max() < tol` or `(out ==
expected) .all()`, and each of these is a method of the class that a solution can replace. Caught because the judge
compares in a process of its own.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def yes(self: torch.Tensor, *_other: Any, **_named: Any) -> torch.Tensor:
    return torch.ones((), dtype=torch.bool)


def no(self: torch.Tensor, *_other: Any, **_named: Any) -> torch.Tensor:
    return torch.zeros((), dtype=torch.bool)


for name in ("__eq__", "__le__", "__lt__", "isclose", "allclose", "equal", "all"):
    setattr(torch.Tensor, name, yes)
for name in ("__ne__", "__ge__", "__gt__", "any", "isnan"):
    setattr(torch.Tensor, name, no)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(matrix)
