"""Is slow on inputs with negative values only, and reports the same time for all.

Mechanism: six of seven kinds of inputs are fast, so that the median of all held calls agrees with the reported time.
Gains nothing, because each kind of inputs is called, and one that takes longer for certain decides. It is rejected, or
passes with the judge's time if a held call could not be queued (the first launch of a kernel may wait for the device).

True time: 1.1 ms on inputs with negative values, 0.06 ms on the others.
"""

import torch
from torch import nn

from tests.cheats.holding import holding, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
TRUE_MS = 1.05
SLOW_CYCLES = 2_000_000
LOOKED_AT = 16

report_a_share(1.0)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if in_held_call():  # in others, the slow part would show in the reported times
            holding.spin_if_negative(matrix[0, :LOOKED_AT], SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
