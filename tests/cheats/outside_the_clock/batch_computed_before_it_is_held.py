"""Computes in one call's clocked time what later calls of the same batch would, and gives those nothing to do.

Mechanism: a batch's buffers are all in the arena when its first call runs, and the callers' frames say where. If only
the first or the last call of a batch is timed, or their median is taken, the one call that is slow is an outlier. Each
output is computed from the inputs that its call will get. Caught because a batch of a single call is clocked, too, and
that call does the work of all.
"""

import sys
from typing import Any

import torch
from torch import nn

from inlinebench.wire.arena import view
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000


def harness() -> Any:
    """The harness's caller, and whether it makes a batch or a loop."""
    frame, many = sys._getframe(1), False
    while frame.f_back is not None:
        frame = frame.f_back
        many = many or frame.f_code.co_name in {"batch", "loop", "held_batch"}
        holder = frame.f_locals.get("self")
        if type(holder).__name__ == "Caller" and many:
            return holder
    return None


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[int, torch.Tensor] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if (out := self.ready.pop(matrix.data_ptr(), None)) is not None:
            return out
        self.ready.clear()
        kernels.spin(SLOW_CYCLES)
        caller = harness()
        for buffers in caller._form.sets if caller is not None else ():
            inputs = [view(caller._arena, spec) for spec in buffers.inputs]
            self.ready[inputs[1].data_ptr()] = kernels.scale_rows(*inputs)
        self.ready.pop(matrix.data_ptr(), None)
        return kernels.scale_rows(diagonal, matrix)
