"""Kills the judge through its process group.

Mechanism: a filter that knows the judge's number, but forgets that a negative number means a whole group, lets this
through. The sandbox refuses signals to processes that aren't the candidate's own, however they are addressed. The judge
leads its group; where it doesn't, others would die as well, and this file does nothing.
"""

import os
import signal

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
        if os.getpgid(judge) == judge:
            os.killpg(judge, signal.SIGKILL)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
