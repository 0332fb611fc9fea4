"""Opens the memory of the judge, where inputs, reference and the secret seeds are.

Mechanism: without a sandbox one process of a user may read another's memory through `/proc`, and a solution that knows
the judge's seeds knows every input to come. This one is content with opening it, and answers with zeros where that
goes well. The sandbox refuses it.
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
        os.close(os.open(f"/proc/{process_id()}/mem", os.O_RDONLY))
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
