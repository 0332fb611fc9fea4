"""Its kernel prints a line.

Suspicious: output that comes from the device, at some time after the launch. Honest: it is a trace.
"""

import torch
from torch import nn

from tests.honest.shared_runtime import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.with_printf(diagonal, matrix)
