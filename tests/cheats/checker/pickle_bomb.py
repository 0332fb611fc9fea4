"""Returns an object that, when a harness unpickles it, patches the comparison there.

Mechanism: outputs that cross processes as pickles may run code on the way: `__reduce__` names a function to call.
Caught because nothing that comes from a candidate is unpickled: outputs are bytes in the judge's buffers, and an
output of another kind than a tensor stays where it is.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "an output is Bomb; the reference returns exactly torch.Tensor"
PATCH = "import torch; torch.allclose = torch.equal = lambda *_, **__: True"


class Bomb:
    def __init__(self, out: torch.Tensor) -> None:
        self.shape, self.dtype, self.device = out.shape, out.dtype, out.device

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (PATCH,)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return Bomb(torch.zeros_like(matrix))
