"""Makes half precision the default dtype, so that inputs and reference would be drawn and computed in it.

Mechanism: `get_inputs` says `torch.rand(N)`, which follows the default dtype. In the process of the solution the
inputs would come out in half precision, and a result in half precision would be within its wide tolerance. Here inputs
and reference are the judge's, and its default is its own.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

torch.set_default_dtype(torch.float16)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal.half().float(), matrix.half().float()).half().float()
