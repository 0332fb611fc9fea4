"""Returns a tensor subclass that computes when somebody reads it.

Mechanism: the output has the right shape and dtype and is of a `torch.Tensor` kind, but its work happens in the first
operator that touches it, the copy or the comparison. Caught because an output must be of torch.Tensor itself.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "an output is Lazy; the reference returns exactly torch.Tensor"


class Lazy(torch.Tensor):
    work: tuple[torch.Tensor, ...]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            read = [kernels.scale_rows(*arg.work) if isinstance(arg, Lazy) and hasattr(arg, "work") else arg
                    for arg in args]
            return func(*read, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        out = torch.empty_like(matrix).as_subclass(Lazy)
        out.work = (diagonal, matrix)
        return out
