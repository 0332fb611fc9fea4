"""Sets the inputs to zero and answers with zeros.

Mechanism: a harness that runs the reference on the same tensors afterwards compares zeros with zeros. Here a weighted
sum over the inputs' bytes is taken before and after, with weights that no candidate knows.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "the solution changed its inputs"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        diagonal.zero_()
        matrix.zero_()
        return out
