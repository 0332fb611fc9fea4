"""Opens the harness's own source for writing.

Mechanism: a comparison that always says yes takes effect with the next judge, for every solution to come. This file
only opens it, and answers with zeros where that goes well. The sandbox lets a candidate write to its scratch folder
alone.
"""

from pathlib import Path

import torch
from torch import nn

import inlinebench
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        (Path(inlinebench.__file__).parent / "compare" / "tolerance.py").open("ab").close()
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
