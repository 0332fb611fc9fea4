"""Starts processes without end.

Mechanism: a full process table stops the judge as well as everything else on the machine. Here the judge counts the
processes of a candidate, and kills them all when they are too many. They end by themselves after five seconds, and
there are never more than a thousand, in case nobody counts.
"""

import os
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "processes"

MOST = 1000
LIFETIME_S = 5


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        begin = time.monotonic()
        for _ in range(MOST):
            if time.monotonic() - begin < LIFETIME_S:
                os.posix_spawn("/bin/sleep", ["sleep", str(LIFETIME_S)], os.environ)
        time.sleep(LIFETIME_S)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
