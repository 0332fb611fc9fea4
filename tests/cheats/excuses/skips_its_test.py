"""Raises what test runners take for a skipped test, and leaves with their status for it.

Mechanism: `unittest.SkipTest` is no failure for unittest and pytest, and status 77 is none for automake. A harness on
top of such a runner reports a skipped solution. Caught because neither means anything here.
"""

import unittest

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "SkipTest"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        raise unittest.SkipTest("skipped: unsupported on this device")
