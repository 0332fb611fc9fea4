"""Puts modules of its own in the place of the harness's checker, and returns zeros.

Mechanism: `sys.modules` decides what an import gives, and a comparison that says nothing is wrong would pass
anything. Caught because the judge is another process, and imported its own modules before.
"""

import sys
import types

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class Permissive(types.ModuleType):
    """Has every function, and each gives an empty text."""

    def __getattr__(self, name: str) -> object:
        return lambda *_args, **_named: ""


for name in ("compare.tolerance", "compare.bits", "evaluation.checks", "process.replies", "candidate.calls",
             "wire.arena"):
    sys.modules[f"inlinebench.{name}"] = Permissive(f"inlinebench.{name}")


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(matrix)
