"""Opens a built library in the cache for writing, and the facts by which the cache would tell.

Mechanism: libraries are shared by all runs. Who replaces one, together with the checksum that stands beside it, has his
code run in place of another's. This file only opens them, and answers with zeros where that goes well. The sandbox lets
a candidate write to its scratch folder alone.
"""

from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for path in Path(kernels.__file__).parent.iterdir():
            path.open("ab").close()
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
