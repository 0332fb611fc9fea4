"""Returns an object that is no tensor, and becomes one when a torch function sees it.

Mechanism: any class with `__torch_function__` may stand for a tensor in torch's functions, so `torch.allclose(out,
...)` does the work, after the clock. Caught because an output must be of torch.Tensor itself.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "an output is Promise; the reference returns exactly torch.Tensor"


class Promise:
    def __init__(self, *work: torch.Tensor) -> None:
        self.work = work
        self.shape, self.dtype, self.device = work[1].shape, work[1].dtype, work[1].device

    @property
    def __class__(self) -> type:
        return torch.Tensor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kept = [kernels.scale_rows(*arg.work) if type(arg) is Promise else arg for arg in args]
        return func(*kept, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return Promise(diagonal, matrix)
