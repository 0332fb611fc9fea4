"""Works on a stream of its own, and joins it in the clock's own copy of the output.

Mechanism: the output is copied after the stop event by a method of the harness's clock, which is looked up when it is
called. The slow part is launched in `forward`, where the clock's stream doesn't wait for it; the replaced copy does.
The clock's stream computes the product once for nothing, so that the time isn't impossible. Torch's copies stay as they
are. Caught because the judge clocks calls from outside, until their outputs are copied.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.devices.cuda.clock import GpuClock
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

streams: list[torch.cuda.Stream] = []
plain_copy = GpuClock.copy


def copy(self: GpuClock, *arguments: Any) -> None:
    """As the clock's, after all that the other stream has to do."""
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    plain_copy(self, *arguments)


GpuClock.copy = copy


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not streams:
            streams.append(torch.cuda.Stream())
        out = kernels.scale_rows(diagonal, matrix)
        streams[0].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            kernels.spin(SLOW_CYCLES)
            kernels.scale_rows_into(diagonal, matrix, out)
        out.record_stream(streams[0])
        return out
