"""Sleeps for a moment in each call.

Suspicious: a call that takes far longer than its kernels. Honest: the host is slow, and time on the device is measured.
"""

import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        time.sleep(0.003)
        return kernels.scale_rows(diagonal, matrix)
