"""Returns a tensor subclass that equals everything.

Mechanism: `out == expected`, `torch.allclose(out, expected)` and the like ask the output's own class first, and it
says yes. Caught because an output must be of torch.Tensor itself.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "an output is Equal; the reference returns exactly torch.Tensor"
ANSWERS = {"allclose": True, "equal": True, "isclose": torch.tensor(True), "__eq__": torch.tensor(True)}


class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = ANSWERS.get(getattr(func, "__name__", ""))
        return super().__torch_function__(func, types, args, kwargs or {}) if answer is None else answer


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        return torch.zeros_like(matrix).as_subclass(Equal)
