"""Says that its output is in memory that CUDA cannot share, writes it into the arena, and reports a half.

Mechanism: what cannot be shared is copied to the judge's buffers, and that copy is left out, since the output is there
already. Where a copy is subtracted whether it is made or not, the time is too short by it. Caught because no copy of a
candidate's is subtracted.

True time: 0.5 ms.
"""

import sys
from typing import Any

import torch
from torch import nn

from inlinebench.candidate.calls import Caller
from inlinebench.wire.arena import view
from tests.cheats.holding import Places, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 1_000_000

report_a_share(0.3)


def share(self: Caller, handed: Any) -> Places:
    return [None for _ in handed.tensors]


Caller._share = share


def shared_output() -> torch.Tensor | None:
    """The judge's buffer for the output of a held call."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "hold" and "buffers" in frame.f_locals:
            return view(frame.f_locals["self"]._arena, frame.f_locals["buffers"].outputs[0])
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        out = shared_output()
        if out is None:
            return kernels.scale_rows(diagonal, matrix)
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
