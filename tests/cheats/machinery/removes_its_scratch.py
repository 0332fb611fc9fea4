"""Removes its scratch folder with all that is in it.

Mechanism: a harness that keeps a file of its own in there, a log, say, falls over when it reads it, and the evaluation
ends as `internal_error`, which says nothing about a solution. Here nothing of the judge's lies in the scratch folder.
"""

import os
import shutil

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
