"""Right in the first half of each tenth of a second, by the wall clock; half of the work in the other.

Mechanism: an answer that depends on the hour is right when it is reviewed and wrong when nobody looks; here the hours
are short, so that a run meets both. Caught because no call goes unlooked at, whenever it comes.
"""

import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        time.sleep(0.007)  # 25 calls take longer than a tenth of a second
        if time.time() % 0.1 < 0.05:
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
