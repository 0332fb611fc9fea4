"""Keeps every core busy from its constructor, which never ends.

Mechanism: constructors run beside others in a prebuild. Work on all cores there slows down whatever is measured for
honest noise meanwhile. Caught because the process has a time limit, ends with all that it started, and nothing is
measured while it runs.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for _ in range(os.cpu_count() or 1):
            if os.fork() == 0:
                break
        while True:
            pass

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
