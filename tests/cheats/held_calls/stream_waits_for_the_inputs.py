"""Has a stream wait until the inputs are there, without a kernel that polls, and reports a twentieth.

Mechanism: cuStreamWaitValue32 lets the GPU's front end wait for a word in memory. Its work begins as soon as the judge
has written the last input, before the sweep and the release, and copy engines could work beside both. Caught because
the judge takes the GPU's time before it writes the inputs.

True time: 1.1 ms.
"""

import ctypes

import torch
from torch import nn

from tests.cheats.holding import SideStream, checked, driver, in_held_call, report_a_share
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected or timed_out"
CAUGHT_BY = "its times don't add up or no answer within"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000
WAIT_FOR_A_BIT, ALL_BITS = 2, 0xFFFFFFFF

report_a_share(0.05)
side = SideStream()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not in_held_call():
            kernels.spin(SLOW_CYCLES)
            return kernels.scale_rows(diagonal, matrix)
        out = torch.empty_like(matrix)
        with torch.cuda.stream(side()):
            matrix[-1, -1] = 0.0  # of the last call; the judge writes over it
            last = matrix.data_ptr() + (matrix.numel() - 1) * matrix.element_size()
            checked(driver().cuStreamWaitValue32_v2(
                ctypes.c_void_p(side().cuda_stream), ctypes.c_uint64(last), ctypes.c_uint(ALL_BITS),
                ctypes.c_uint(WAIT_FOR_A_BIT)))
            kernels.spin(SLOW_CYCLES)
            kernels.scale_rows_into(diagonal, matrix, out)
        torch.cuda.current_stream().wait_stream(side())
        return out
