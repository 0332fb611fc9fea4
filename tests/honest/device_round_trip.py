"""The result goes from the device to the host and back.

Suspicious: the host could have computed it. Honest: the kernel did; the trips only take time, all of it inside the
clock, and they wait for the device.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        on_host = kernels.scale_rows(diagonal, matrix).cpu()
        return on_host.to(matrix.device)
