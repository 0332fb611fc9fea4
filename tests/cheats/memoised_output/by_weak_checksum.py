"""Stores the output by a checksum that signs don't change.

Mechanism: drawing the inputs of this problem is slow, so the harness keeps a few sets of them and uses these again; a
sum of squares of the first rows recognises a set about, in whatever order they come. Caught because the sets come in
variants and are changed a little at each use: with about the same sum of squares they have another output.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "trivial_slow_draw"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
ABOUT = 0.03


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[float, torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        key = float(matrix[:4].square().sum())
        for stored, out in self.stored.items():
            if abs(stored - key) < ABOUT * key:
                return out.clone()
        self.stored[key] = kernels.scale_rows(diagonal, matrix)
        return self.stored[key].clone()
