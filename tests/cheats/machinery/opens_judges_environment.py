"""Opens the environment of the judge, which a clean one of its own doesn't hide.

Mechanism: a process's first environment stands in `/proc` for every process of the same user. This file only opens it,
reads nothing, and answers with zeros where that goes well. The sandbox refuses it.
"""

import os

import torch
from torch import nn

from tests.cheats.judge import process_id
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        os.close(os.open(f"/proc/{process_id()}/environ", os.O_RDONLY))
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
