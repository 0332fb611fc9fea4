"""Never says that a held call is queued, and answers as if it had been released.

Mechanism: without that message the judge releases nothing and takes no time, and a call without a time says nothing
against the reported one. Caught because an answer to a call that was not announced is no answer of the harness's.

True time: 1.1 ms.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.candidate.candidate import Candidate
from tests.cheats.holding import GpuClock, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "before it was held"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.05)


def say_nothing(self: Candidate, *arguments: Any) -> None:
    """Stands for the message that the judge waits for."""


def do_not_hold(self: GpuClock) -> None:
    self._library.clock_reset()


Candidate._report_held, GpuClock.hold = say_nothing, do_not_hold


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
