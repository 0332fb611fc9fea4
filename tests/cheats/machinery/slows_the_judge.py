"""Lowers the priority of the judge.

Mechanism: this slows down the reference that the solution is compared with. The sandbox allows it for the caller only.
"""

import os

import torch
from torch import nn

from tests.cheats.judge import process_id
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        judge = process_id()
        if judge <= 1:
            raise PermissionError("the judge is out of sight")
        os.setpriority(os.PRIO_PROCESS, judge, 19)
        if os.getpriority(os.PRIO_PROCESS, judge) != 19:
            raise PermissionError("the judge keeps its priority")
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
