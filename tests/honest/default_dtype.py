"""Makes float64 torch's default dtype, because its own constants want it.

Suspicious: a setting of the whole process, which makes its weights float64 unless it says otherwise. Honest: it does.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

torch.set_default_dtype(torch.float64)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        factor = torch.tensor(0.1) * 10
        return kernels.scale_rows((diagonal * factor.item()).float(), matrix)
