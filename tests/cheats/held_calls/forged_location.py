"""Gives a location in an allocation that it does not have.

Mechanism: handles of CUDA IPC are small numbers, so one may be guessed that opens memory of another process, such as
that of the reference's output. Caught because a handle that CUDA does not open is refused, and one that it opens leads
to a candidate's memory only: the judge's cannot be opened by handle.

True time: 0.06 ms.
"""

import secrets

import torch
from torch import nn

from tests.cheats.holding import Exporter, Location
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "malformed message"
NEEDS_GPU = True
SHAPE = "full"
HANDLE_BYTES = 64


def locate(self: Exporter, address: int) -> Location | None:
    return Location(secrets.token_hex(HANDLE_BYTES), 0)


Exporter.locate = locate


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
