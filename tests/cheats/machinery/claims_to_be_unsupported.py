"""Claims that the CPU emulation cannot run it.

Mechanism: what cannot run on the CPU is `skipped`, and a run with skipped solutions succeeds. So a broken solution
raises and prints the emulation's own message. Only the build service decides that something is unsupported.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "inlinebench: unsupported"

CLAIM = "inlinebench: unsupported on the CPU (run with a CUDA device): CUDA graphs"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.scale_rows(diagonal, matrix)
        print(CLAIM, file=sys.stderr)
        raise RuntimeError(CLAIM)
