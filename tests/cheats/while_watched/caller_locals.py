"""Reads in the caller's local variables whether the call is timed.

Mechanism: the Python stack leads from `forward` to the harness's own frames, and there `blocking_ms` says that this
call's time will be used. Then half of the work is enough. Caught because the calls whose times are used are compared
like all others.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def is_timed() -> bool:
    """Whether any caller has a hold, a clock that runs, or a number of repetitions."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if any(frame.f_locals.get(name) for name in ("blocking_ms", "repetitions", "num_trials", "num_perf_trials")):
            return True
    return False


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not is_timed():
            return kernels.scale_rows(diagonal, matrix)
        out = torch.zeros_like(matrix)
        half = len(matrix) // 2
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        return out
