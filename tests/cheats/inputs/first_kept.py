"""Takes the first input for a weight: it is read in the first call and kept.

Mechanism: a harness that draws the inputs once, or only some of them anew, never notices, and what depends on the kept
input alone can be computed once for ever. The memory is the same in every call, so even a look at the address shows no
difference. Here all inputs are new in each call.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kept = self.kept.setdefault(diagonal.numel(), diagonal.clone())
        return kernels.scale_rows(kept, matrix)
