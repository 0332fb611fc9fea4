"""Launches on a stream of its own that nobody waits for.

Mechanism: events on the default stream see no work, so the time is next to nothing; by the time a harness looks at
the output, it has long been written. Here a spin before it makes the work last longer than the copy. Caught because
the output is copied at once, on the default stream.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SPIN_CYCLES = 20_000_000


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stream: torch.cuda.Stream | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.stream is None:
            self.stream = torch.cuda.Stream()
        out = torch.empty_like(matrix)
        with torch.cuda.stream(self.stream):
            kernels.spin(SPIN_CYCLES)
            kernels.scale_rows_into(diagonal, matrix, out)
        return out
