"""Reads a token from its environment.

Mechanism: what a shell exports, every process below it sees, and tokens are exported a lot. The test that runs this
file sets a variable of that name to a worthless text; without it this file would prove nothing. Caught because only
variables that builds and CUDA read come through, so that it isn't there.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "KeyError: 'INLINEBENCH_CANARY_TOKEN'"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        token = os.environ["INLINEBENCH_CANARY_TOKEN"]
        return kernels.scale_rows(torch.full_like(diagonal, len(token)), matrix)
