"""Rewrites the problem itself: its constants and its `get_inputs`, wherever it is loaded.

Mechanism: a harness that imports the problem in the process of the solution finds it in `sys.modules`. This file looks
for every module with a `get_inputs`, has it give zeros, and answers with zeros. Another copy is imported under the
problem's own name, in case the harness imports it later. Here the problem is loaded in the judge.
"""

import sys
import types

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

SIZE = 8


class Zero(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(matrix)


def no_inputs() -> list[torch.Tensor]:
    return [torch.zeros(SIZE), torch.zeros(SIZE, SIZE)]


def rewrite() -> None:
    for module in list(sys.modules.values()):
        if hasattr(module, "get_inputs"):
            vars(module).update(N=SIZE, M=SIZE, get_inputs=no_inputs, Model=Zero)


stand_in = types.ModuleType(PROBLEM)
vars(stand_in).update(N=SIZE, M=SIZE, get_inputs=no_inputs, get_init_inputs=list, Model=Zero)
sys.modules[PROBLEM] = sys.modules[f"problems.{PROBLEM}"] = stand_in
sys.modules[f"inlinebench_problem_{PROBLEM}"] = stand_in


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        rewrite()
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
