"""Frees the memory of its output and gives the location that it had, when other memory may have the same address.

Mechanism: the judge keeps allocations open for later calls, by their handles, so what it reads may be memory that the
solution does not have any more. Caught because that holds an earlier output, and each call has inputs of its own.

True time: 0.06 ms.
"""

import gc
from typing import Any

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


def free(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        torch.cuda.empty_cache()


Exporter.locate = locate


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if free not in gc.callbacks:
            gc.callbacks.append(free)
        return kernels.scale_rows(diagonal, matrix)
