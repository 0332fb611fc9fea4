"""Stores the output by a coarse sample of the inputs.

Mechanism: a few values, rounded, are meant to tell input sets apart that a harness keeps and uses in turn; looking a
whole output up by them is cheaper than computing it. Caught because fresh draws are alike at this precision and
differ in everything else.
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
        self.stored: dict[tuple[float, ...], torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        key = tuple(round(float(value)) for value in (diagonal[0], matrix[0, 0], matrix[-1, -1]))
        if key not in self.stored:
            self.stored[key] = kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return self.stored[key].clone()
