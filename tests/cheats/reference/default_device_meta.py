"""Makes "meta" the default device, on which tensors have shapes and no values.

Mechanism: a reference that makes tensors of its own in this process would make them without values, and comparing them
compares nothing. It is set in `forward`, where the model is already built. Here inputs, reference and comparison are
the judge's.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        torch.set_default_device("meta")
        return out
