"""Says that it is done when half of its output is, and computes the rest while the judge copies the first half.

Mechanism: a copy of 64 MB takes a while, and what lies at its end is read last. Caught because the copy is made by a
kernel of the judge's, beside which no kernel of another process runs, and the time ends when it is complete.

True time: 2.1 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import GpuClock, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.5)
plain_done = GpuClock.done
rest: list[tuple[torch.Tensor, ...]] = []


def done(self: GpuClock) -> None:
    plain_done(self)
    if rest:
        kernels.spin(SLOW_CYCLES)
        kernels.scale_rows_into(*rest.pop())


GpuClock.done = done


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out, half = torch.empty_like(matrix), len(matrix) // 2
        kernels.spin(SLOW_CYCLES)
        kernels.scale_rows_into(diagonal[:half], matrix[:half], out[:half])
        last = diagonal[half:], matrix[half:], out[half:]
        if in_held_call():
            rest.append(last)
        else:
            kernels.spin(SLOW_CYCLES)
            kernels.scale_rows_into(*last)
        return out
