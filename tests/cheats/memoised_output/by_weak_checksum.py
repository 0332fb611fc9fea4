"""Stores the output by a checksum that signs don't change.

Mechanism: drawing the inputs of this problem is slow, so the harness keeps a few sets of them and uses these again; a
sum of squares of the first rows recognises a set, in whatever order they come. Caught because the sets come in
variants: negated or with random signs they have the same sum of squares and another output.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_slow_draw"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[float, torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        key = float(matrix[:4].square().sum())
        if key not in self.stored:
            self.stored[key] = kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return self.stored[key].clone()
