"""Aborts, as a failed assertion in C++ does.

Caught as the candidate's death by a signal; judge and other candidates live in other processes.
"""

import os

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "killed by SIGABRT"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        os.abort()
