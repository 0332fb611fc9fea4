"""Reads address 0.

Caught as the candidate's death by a signal; judge and other candidates live in other processes.
"""

import ctypes

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "killed by SIGSEGV"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return matrix
