"""Launches its kernel once, while it is constructed, and leaves the calls to the library.

Mechanism: a harness that notes which kernels the process has launched since it started sees one of its own. Caught
because no kernel of its own ran in any call.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"

SIZE = 64


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        kernels.scale_rows(torch.ones(SIZE, device=device), torch.ones(SIZE, SIZE, device=device))

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal[:, None] * matrix
