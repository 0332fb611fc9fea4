"""Makes `torch.Tensor.fill_` do nothing, and returns memory in which the last output still lies.

Mechanism: the harness fills freed blocks with NaN before each call, with a method that a solution can replace;
without that, an output that nobody writes is the last one. Caught because each call has inputs of its own, so the
last output is wrong.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def fill_(self: torch.Tensor, *_value: Any) -> torch.Tensor:
    return self


torch.Tensor.fill_ = fill_


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 1:
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.empty_like(matrix)
