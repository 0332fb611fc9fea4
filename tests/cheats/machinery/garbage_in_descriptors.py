"""Writes garbage into everything that it has open.

Mechanism: one of its files is the channel to the judge, and what reads from there might fall over, in the middle of an
evaluation or at a length of four gigabytes. Caught because what arrives is not a frame.
"""

import contextlib
import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "malformed message"

GARBAGE = b"\xff" * 4096


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # one that can't be written
                os.write(int(name), GARBAGE)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
