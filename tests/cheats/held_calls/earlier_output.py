"""Gives the location of its first output in every held call.

Mechanism: locations are what a solution says, and the memory of an earlier output is as good as any. Caught because the
judge copies what is there at the moment of the call, and each call has inputs of its own.

True time: 0.06 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import Exporter, Location
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
plain_locate = Exporter.locate
first: list[Location | None] = []


def locate(self: Exporter, address: int) -> Location | None:
    first.append(plain_locate(self, address))
    return first[0]


Exporter.locate = locate


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        if not first:
            self.kept.append(out)  # no later call gets this memory
        return out
