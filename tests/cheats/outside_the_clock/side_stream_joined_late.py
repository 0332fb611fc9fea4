"""Works on a stream of its own, and joins it in the harness's copy of the output.

Mechanism: the slow part is launched in `forward`, but the default stream, on which the clock looks, doesn't wait for
it before the stop event; a `torch.Tensor.copy_` of the solution's own does. Caught because outputs are copied as
bytes, by the clock's library: torch's method is not asked, nobody joins the stream, and the copy comes too early.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SLOW_CYCLES = 2_000_000

streams: list[torch.cuda.Stream] = []
plain_copy = torch.Tensor.copy_


def copy_(self: torch.Tensor, source: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """As torch's, after all that the other stream has to do."""
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    return plain_copy(self, source, *args, **named)


torch.Tensor.copy_ = copy_


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not streams:
            streams.append(torch.cuda.Stream())
        out = kernels.scale_rows(torch.ones_like(diagonal), matrix)
        streams[0].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            kernels.spin(SLOW_CYCLES)
            kernels.scale_rows_into(diagonal, matrix, out)
        return out
