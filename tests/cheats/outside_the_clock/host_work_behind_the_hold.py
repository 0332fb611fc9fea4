"""Does the work on the host while the hold keeps the GPU waiting.

Mechanism: behind the hold the host has all the time it wants before the first time stamp. The copy engine needs no
SM, so inputs come to the host and the result goes to the device on another stream, hold or no hold; timed is one pass
that moves the result. Where the inputs are those of the last call (not written yet), the call is honest, and slow.
Gains nothing,
because the judge holds calls before it writes their inputs, and clocks these from outside: they take 1.07 ms.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
TRUE_MS = 1.05
SLOW_CYCLES = 2_000_000


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stream: torch.cuda.Stream | None = None

    def prepare(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> None:
        self.diagonal = torch.full(diagonal.shape, torch.nan, device="cpu").pin_memory()
        self.matrix = torch.empty(matrix.shape, device="cpu").pin_memory()
        self.result, self.ones = torch.empty_like(matrix), torch.ones_like(diagonal)
        self.stream, self.address = torch.cuda.Stream(), matrix.data_ptr()
        torch.cuda.synchronize()

    def move(self, target: torch.Tensor, source: torch.Tensor) -> None:
        with torch.cuda.stream(self.stream):
            target.copy_(source, non_blocking=True)
        self.stream.synchronize()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.stream is None:
            self.prepare(diagonal, matrix)
        before = self.diagonal.clone()
        self.move(self.diagonal, diagonal)
        stale = torch.equal(self.diagonal, before) or bool(self.diagonal.isnan().any())
        if stale or matrix.data_ptr() != self.address:
            kernels.spin(SLOW_CYCLES)
            return kernels.scale_rows(diagonal, matrix)
        self.move(self.matrix, matrix)
        self.move(self.result, self.matrix.mul_(self.diagonal[:, None]))
        return kernels.scale_rows(self.ones, self.result)
