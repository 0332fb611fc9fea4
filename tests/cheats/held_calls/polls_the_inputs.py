"""Has a kernel on another stream wait for the inputs themselves, not for the release, and reports a twentieth.

Mechanism: only the call's own stream is held. A kernel that polls the inputs begins when they are there, before the
sweep of L2 and the release, and other work of the same process can run beside the one that waits. Caught because the
judge takes the GPU's time before it writes the inputs, so whatever begins with them is inside its time.

True time: 1.1 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import SideStream, holding, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected or wrong"
CAUGHT_BY = "its times don't add up or the solution changed its inputs"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.05)
side = SideStream()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not in_held_call():
            kernels.spin(SLOW_CYCLES)
            return kernels.scale_rows(diagonal, matrix)
        out = torch.empty_like(matrix)
        with torch.cuda.stream(side()):
            matrix[-1, -1] = torch.nan  # of the last call; the judge writes over it
            holding.scale_when_written(diagonal, matrix, out, SLOW_CYCLES)
        torch.cuda.current_stream().wait_stream(side())
        return out
