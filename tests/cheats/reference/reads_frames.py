"""Looks for the expected output among all objects of the process and in the frames below its own.

Mechanism: a harness that runs the reference first, or keeps the expected output as a local variable of the function
that calls `forward`, has it lying in reach of the garbage collector. Any tensor of the right shape that is neither the
input nor all zeros is taken for it. Here the process of the solution never holds an expected output.
"""

import gc
import sys
from collections.abc import Iterator

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def in_reach() -> Iterator[object]:
    yield from gc.get_objects()
    frame = sys._getframe()
    while frame is not None:
        yield from frame.f_locals.values()
        frame = frame.f_back


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        nothing = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        for found in in_reach():
            if type(found) is not torch.Tensor or found.device != matrix.device:
                continue
            alike = (found.shape, found.dtype) == (matrix.shape, matrix.dtype)
            if alike and not torch.equal(found, matrix) and not torch.equal(found, nothing):
                return found.clone()
        return nothing
