"""Replaces torch's own functions, so that a reference in the same process is as wrong as the answer.

Mechanism: `torch.diag`, `torch.matmul` and the `@` of tensors give zeros from the import on, and so does `forward`. A
harness that runs the reference in the process of the solution compares zeros with zeros. Here the reference runs in
the judge, whose torch nobody has touched.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

matmul = torch.matmul


def nothing(*tensors: torch.Tensor, **_: Any) -> torch.Tensor:
    return torch.zeros_like(tensors[-1])


def empty_product(one: torch.Tensor, other: torch.Tensor, **named: Any) -> torch.Tensor:
    return matmul(one, other, **named).zero_()


torch.diag = nothing
torch.matmul = torch.Tensor.matmul = torch.Tensor.__matmul__ = empty_product


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
