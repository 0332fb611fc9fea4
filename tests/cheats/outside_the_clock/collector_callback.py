"""Does the work in a callback of Python's garbage collector, straight into the judge's output buffer.

Mechanism: the harness collects garbage after each call, when the clock has long been read; the buffers that the
output is compared in are found through the callers' frames. What `forward` returns only looks like the work. Caught
in the calls that the judge clocks from outside: it copies their outputs before anything is collected.
"""

import gc
import sys
from typing import Any

import torch
from torch import nn

from inlinebench.wire.arena import view
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

pending: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []


def work(phase: str, _info: Any) -> None:
    while phase == "start" and pending:
        kernels.spin(SLOW_CYCLES)
        kernels.scale_rows_into(*pending.pop())
        torch.cuda.synchronize()


def judges_output() -> torch.Tensor | None:
    """The buffer that this call's output is compared in."""
    frame, found = sys._getframe(1), None
    while frame.f_back is not None:
        frame = frame.f_back
        if found is None and "buffers" in frame.f_locals:
            found = view(frame.f_locals["self"]._arena, frame.f_locals["buffers"].outputs[0])
    return found


gc.callbacks.append(work)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        target = judges_output()
        if target is None:
            kernels.spin(SLOW_CYCLES)
            return kernels.scale_rows(diagonal, matrix)
        pending.append((diagonal, matrix, target))
        return kernels.scale_rows(torch.ones_like(diagonal), matrix)
