"""Leaves a dispatch mode on, in which the harness's copy of the output does the work.

Mechanism: a `TorchDispatchMode` sees every operator of its thread, also those that the harness calls after the stop
event; no name in torch is patched. Caught because outputs are copied as bytes, by the clock's library: no operator is
called, and the right values never come.
"""

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


class Late(TorchDispatchMode):
    """Keeps the work of an output until it is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # skipping would import torch's compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.copy_.default and (work := self.pending.pop(args[1].data_ptr(), None)):
            kernels.scale_rows_into(*work, args[1])
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode: Late | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.mode is None:
            self.mode = Late()
            self.mode.__enter__()
        out = kernels.scale_rows(torch.ones_like(diagonal), matrix)
        self.mode.pending[out.data_ptr()] = (diagonal, matrix)
        return out
