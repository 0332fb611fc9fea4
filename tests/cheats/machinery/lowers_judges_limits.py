"""Lowers the limits of the judge.

Mechanism: the kernel lets a process change the limits of any process of the same user. A judge without file descriptors
fails, and so says nothing about the solution. The sandbox allows it for the caller only.
"""

import resource

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
        resource.prlimit(judge, resource.RLIMIT_NOFILE, (3, 3))
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
